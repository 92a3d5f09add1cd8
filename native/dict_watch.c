#include "dict_watch.h"

struct MdWatch {
    MdWatch *next; /* in its bucket */
    PyObject *dict; /* borrowed; NULL once it is dead */
    PyObject *key;
    char *stale;
};

#define BUCKETS 4096

static MdWatch *buckets[BUCKETS];
static int watcher = -1;
static bool asked; /* for a watcher: one for the process, or none */

static MdWatch **bucket_of(const PyObject *dict)
{
    return &buckets[((uintptr_t)dict >> 4) % BUCKETS];
}

static bool concerns(const MdWatch *watch, MdDictEvent event, PyObject *key)
{
    if (!MD_EVENT_HAS_KEY(event) || watch->key == NULL || watch->key == key) {
        return true;
    }
    return key == NULL || !PyUnicode_CheckExact(key) || PyUnicode_Compare(watch->key, key) == 0;
}

/* CPython is about to change a dict. Runs no Python code. */
static int on_change(MdDictEvent event, PyObject *dict, PyObject *key, PyObject *Py_UNUSED(value))
{
    MdWatch **link = bucket_of(dict);
    while (*link != NULL) {
        MdWatch *watch = *link;
        if (watch->dict == dict && concerns(watch, event, key)) {
            *watch->stale = 1;
        }
        if (watch->dict == dict && MD_EVENT_IS_DEATH(event)) {
            *link = watch->next; /* another dict may come to this address */
            watch->dict = NULL;
            continue;
        }
        link = &watch->next;
    }
    return 0;
}

MdWatch *md_dict_watch(PyObject *dict, PyObject *key, char *stale)
{
    if (!asked) {
        asked = true;
        watcher = md_watcher_new(on_change);
        PyErr_Clear(); /* none is left: dictionaries are read instead */
    }
    MdWatch *watch = watcher >= 0 ? PyMem_Malloc(sizeof(MdWatch)) : NULL;
    if (watch == NULL) {
        return NULL;
    }
    if (md_watcher_watch(watcher, dict) < 0) {
        PyErr_Clear();
        PyMem_Free(watch);
        return NULL;
    }
    MdWatch **bucket = bucket_of(dict);
    *watch = (MdWatch){.next = *bucket, .dict = dict, .key = key, .stale = stale};
    *bucket = watch;
    return watch;
}

void md_dict_unwatch(MdWatch *watch)
{
    if (watch->dict != NULL) {
        MdWatch **link = bucket_of(watch->dict);
        bool others = false;
        while (*link != NULL) {
            if (*link == watch) {
                *link = watch->next;
                continue;
            }
            others = others || (*link)->dict == watch->dict;
            link = &(*link)->next;
        }
        if (!others && md_watcher_unwatch(watcher, watch->dict) < 0) {
            PyErr_Clear();
        }
    }
    PyMem_Free(watch);
}
