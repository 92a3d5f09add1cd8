/* CPython 3.11 numbers all changes of dicts in one sequence: the version that a dict gets by a change of ours says how many
 * there have been. Ours are not counted. */
#include "dict_epoch.h"

static PyObject *probe, *key; /* a dict that nobody else knows, and its only key */
static uint64_t ours, latest;
static bool odd;

static bool begin(void)
{
    probe = PyDict_New();
    key = PyUnicode_InternFromString("epoch");
    if (probe == NULL || key == NULL || PyDict_SetItem(probe, key, Py_False) < 0) {
        PyErr_Clear();
        Py_CLEAR(probe);
        Py_CLEAR(key);
        return false;
    }
    if (PyObject_GC_IsTracked(probe)) {
        PyObject_GC_UnTrack(probe);
    }
    return true;
}

uint64_t md_dict_epoch(void)
{
    if (MD_UNLIKELY(probe == NULL) && (!MD_HAS_DICT_VERSIONS || !begin())) {
        return 0;
    }
    odd = !odd;
    if (PyDict_SetItem(probe, key, odd ? Py_True : Py_False) < 0) {
        PyErr_Clear();
        return 0;
    }
    uint64_t version = *md_dict_version(probe);
    if (version <= latest) {
        return 0; /* no sequence after all */
    }
    latest = version;
    return version - ++ours;
}
