#include "stats.h"

MdStats md_stats;

PyObject *md_py_stats(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    static const struct {
        const char *name;
        const uint64_t *count;
    } rows[] = {
#define MD_COUNTER_ROW(name, meaning) {#name, &md_stats.name},
        MD_COUNTERS(MD_COUNTER_ROW)
#undef MD_COUNTER_ROW
    };
    PyObject *result = PyDict_New();
    if (result == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < Py_ARRAY_LENGTH(rows); i++) {
        PyObject *count = PyLong_FromUnsignedLongLong(*rows[i].count);
        if (count == NULL || PyDict_SetItemString(result, rows[i].name, count) < 0) {
            Py_XDECREF(count);
            Py_DECREF(result);
            return NULL;
        }
        Py_DECREF(count);
    }
    return result;
}
