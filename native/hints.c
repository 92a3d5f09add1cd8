#include "hints.h"

#include "guard_vm.h"

static uint64_t mixed(uint64_t seed, uint64_t value)
{
    uint64_t x = (seed ^ value) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9u; /* two rounds: the low bits choose the place */
    return x ^ (x >> 32);
}

static uint64_t feature(PyObject *value)
{
    uint64_t type = (uint64_t)(uintptr_t)Py_TYPE(value) >> 4;
    if (PyFloat_CheckExact(value)) {
        uint64_t bits;
        memcpy(&bits, &((PyFloatObject *)value)->ob_fval, sizeof(bits));
        return mixed(type, bits);
    }
    if (PyLong_CheckExact(value) || PyUnicode_CheckExact(value) || PyBytes_CheckExact(value)) {
        return mixed(type, (uint64_t)PyObject_Hash(value)); /* hashing one of these cannot fail */
    }
    if (PyList_Check(value) || PyTuple_Check(value) || PyDict_Check(value)) {
        return mixed(type, (uint64_t)md_static_len(value));
    }
    if (md_tensor_leaves != NULL) {
        uint64_t sizes = md_tensor_leaves->signature(value);
        if (sizes != 0) {
            return mixed(type, sizes);
        }
    }
    return mixed(type, (uint64_t)(uintptr_t)value >> 4);
}

uint64_t md_hint_signature(const MdFlat *flat, PyFunctionObject *func)
{
    uint64_t signature = 1;
    for (Py_ssize_t i = 0; i < flat->count; i++) {
        PyObject *value = flat->values[i];
        signature = mixed(signature, feature(value));
        for (Py_ssize_t j = 0; PyTuple_CheckExact(value) && j < PyTuple_GET_SIZE(value) && j < 8; j++) {
            signature = mixed(signature, feature(PyTuple_GET_ITEM(value, j))); /* *args */
        }
    }
    PyObject *closure = func->func_closure;
    for (Py_ssize_t i = 0; closure != NULL && i < PyTuple_GET_SIZE(closure); i++) {
        PyObject *content = PyCell_GET(PyTuple_GET_ITEM(closure, i));
        signature = mixed(signature, content != NULL ? feature(content) : 0);
    }
    return signature;
}

/* The places where a signature may be: a quarter of the table is in use at most, so that all of them are taken about once in
 * ten thousand entries. */
#define MD_PLACES 8

static MdHint *place(const MdCodeState *state, uint64_t signature, unsigned number)
{
    return &state->hints[(signature + number) & (state->hint_room - 1)];
}

MdEntry *md_hint_find(const MdCodeState *state, uint64_t signature)
{
    for (unsigned i = 0; state->hint_room != 0 && i < MD_PLACES; i++) {
        const MdHint *hint = place(state, signature, i);
        if (hint->signature == signature && hint->entry != NULL) {
            return hint->entry;
        }
    }
    return NULL;
}

void md_hint_set(MdCodeState *state, uint64_t signature, MdEntry *entry)
{
    if (state->hint_room < (size_t)state->entries * 4) {
        size_t room = 64;
        while (room < (size_t)state->entries * 8) {
            room *= 2;
        }
        MdHint *hints = PyMem_Calloc(room, sizeof(MdHint));
        if (hints == NULL) {
            return;
        }
        PyMem_Free(state->hints);
        state->hints = hints;
        state->hint_room = room;
    }
    MdHint *best = place(state, signature, 0);
    for (unsigned i = 0; i < MD_PLACES; i++) {
        MdHint *hint = place(state, signature, i);
        if (hint->entry == NULL || hint->signature == signature) {
            best = hint;
            break;
        }
    }
    *best = (MdHint){signature, entry};
}

void md_hint_drop(MdCodeState *state, const MdEntry *entry)
{
    for (size_t i = 0; i < state->hint_room; i++) {
        if (state->hints[i].entry == entry) {
            state->hints[i] = (MdHint){0};
        }
    }
}
