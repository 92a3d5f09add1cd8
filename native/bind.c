#include "bind.h"

#include "stats.h"

/* Position of a keyword among the parameters that may be given by name, -1 if it is none of them. */
static Py_ssize_t parameter_index(PyCodeObject *code, PyObject *keyword)
{
    PyObject *const *names = &PyTuple_GET_ITEM(code->co_localsplusnames, 0);
    Py_ssize_t end = (Py_ssize_t)code->co_argcount + code->co_kwonlyargcount;
    for (Py_ssize_t i = code->co_posonlyargcount; i < end; i++) {
        if (names[i] == keyword) {
            return i;
        }
    }
    for (Py_ssize_t i = code->co_posonlyargcount; i < end; i++) {
        if (PyUnicode_Compare(names[i], keyword) == 0) {
            return i;
        }
    }
    return -1;
}

/* Distributes keywords to named parameters, the rest to `**kwargs`. */
static MdBinding bind_keywords(MdFlat *flat, PyCodeObject *code, PyObject *const *values, PyObject *kwnames,
                               PyObject *rest)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *keyword = PyTuple_GET_ITEM(kwnames, i);
        if (!PyUnicode_Check(keyword)) {
            return MD_UNBOUND;
        }
        Py_ssize_t index = parameter_index(code, keyword);
        if (index >= 0) {
            if (flat->values[index] != NULL) {
                return MD_UNBOUND; /* given twice */
            }
            flat->values[index] = Py_NewRef(values[i]);
        }
        else if (rest == NULL) {
            return MD_UNBOUND; /* unexpected */
        }
        else if (PyDict_SetItem(rest, keyword, values[i]) < 0) {
            return MD_BIND_ERROR;
        }
    }
    return MD_BOUND;
}

/* Fills what is still missing from __defaults__ and __kwdefaults__. */
static MdBinding bind_defaults(MdFlat *flat, PyFunctionObject *func, PyCodeObject *code)
{
    PyObject *defaults = func->func_defaults;
    Py_ssize_t default_count = defaults != NULL ? PyTuple_GET_SIZE(defaults) : 0;
    Py_ssize_t first_default = code->co_argcount - default_count;
    for (Py_ssize_t i = 0; i < code->co_argcount; i++) {
        if (flat->values[i] == NULL) {
            if (i < first_default) {
                return MD_UNBOUND;
            }
            flat->values[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, i - first_default));
        }
    }
    for (Py_ssize_t i = code->co_argcount; i < (Py_ssize_t)code->co_argcount + code->co_kwonlyargcount; i++) {
        if (flat->values[i] == NULL) {
            PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
            PyObject *value =
                func->func_kwdefaults != NULL ? PyDict_GetItemWithError(func->func_kwdefaults, name) : NULL;
            if (value == NULL) {
                return PyErr_Occurred() ? MD_BIND_ERROR : MD_UNBOUND;
            }
            flat->values[i] = Py_NewRef(value);
        }
    }
    return MD_BOUND;
}

static MdBinding fill(MdFlat *flat, PyFunctionObject *func, PyCodeObject *code, PyObject *const *args, Py_ssize_t given,
                      PyObject *kwnames)
{
    Py_ssize_t named = (Py_ssize_t)code->co_argcount + code->co_kwonlyargcount;
    Py_ssize_t slot = named;
    PyObject *rest = NULL;
    Py_ssize_t positional = given < code->co_argcount ? given : code->co_argcount;
    for (Py_ssize_t i = 0; i < positional; i++) {
        flat->values[i] = Py_NewRef(args[i]);
    }
    if (code->co_flags & CO_VARARGS) {
        PyObject *more = PyTuple_New(given - positional);
        if (more == NULL) {
            return MD_BIND_ERROR;
        }
        for (Py_ssize_t i = positional; i < given; i++) {
            PyTuple_SET_ITEM(more, i - positional, Py_NewRef(args[i]));
        }
        flat->values[slot++] = more;
    }
    else if (given > positional) {
        return MD_UNBOUND;
    }
    if (code->co_flags & CO_VARKEYWORDS) {
        rest = PyDict_New();
        if (rest == NULL) {
            return MD_BIND_ERROR;
        }
        flat->values[slot] = rest;
    }
    if (kwnames != NULL) {
        MdBinding outcome = bind_keywords(flat, code, args + given, kwnames, rest);
        if (outcome != MD_BOUND) {
            return outcome;
        }
    }
    return bind_defaults(flat, func, code);
}

MdBinding md_bind_general(MdFlat *flat, PyFunctionObject *func, PyCodeObject *code, PyObject *const *args,
                          Py_ssize_t given, PyObject *kwnames)
{
    if (md_flat_init_owned(flat, md_flat_count(code)) < 0) {
        return MD_BIND_ERROR;
    }
    MdBinding outcome = fill(flat, func, code, args, given, kwnames);
    if (outcome != MD_BOUND) {
        md_flat_free(flat);
    }
    return outcome;
}

PyObject *md_call_flat(PyObject *func, PyCodeObject *code, PyObject *const *values)
{
    Py_ssize_t positional = code->co_argcount;
    Py_ssize_t slot = positional + code->co_kwonlyargcount;
    PyObject *more = code->co_flags & CO_VARARGS ? values[slot++] : NULL;
    PyObject *rest = code->co_flags & CO_VARKEYWORDS ? values[slot] : NULL;
    if (code->co_kwonlyargcount == 0 && more == NULL && rest == NULL) {
        return PyObject_Vectorcall(func, values, (size_t)positional, NULL);
    }
    Py_ssize_t extra = more != NULL ? PyTuple_GET_SIZE(more) : 0;
    PyObject *args = PyTuple_New(positional + extra);
    PyObject *kwargs = rest != NULL ? PyDict_Copy(rest) : PyDict_New();
    PyObject *result = NULL;
    if (args == NULL || kwargs == NULL) {
        goto done;
    }
    for (Py_ssize_t i = 0; i < positional; i++) {
        PyTuple_SET_ITEM(args, i, Py_NewRef(values[i]));
    }
    for (Py_ssize_t i = 0; i < extra; i++) {
        PyTuple_SET_ITEM(args, positional + i, Py_NewRef(PyTuple_GET_ITEM(more, i)));
    }
    for (Py_ssize_t i = positional; i < positional + code->co_kwonlyargcount; i++) {
        if (PyDict_SetItem(kwargs, PyTuple_GET_ITEM(code->co_localsplusnames, i), values[i]) < 0) {
            goto done;
        }
    }
    result = PyObject_Call(func, args, kwargs);
done:
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return result;
}

PyObject *md_function_like(PyFunctionObject *like, PyCodeObject *code, bool defaults)
{
    PyObject *made = PyFunction_NewWithQualName((PyObject *)code, like->func_globals, like->func_qualname);
    if (made == NULL) {
        return NULL;
    }
    PyFunctionObject *func = (PyFunctionObject *)made;
    Py_XSETREF(func->func_builtins, Py_NewRef(like->func_builtins));
    Py_XSETREF(func->func_closure, Py_XNewRef(like->func_closure));
    if (defaults) {
        Py_XSETREF(func->func_defaults, Py_XNewRef(like->func_defaults));
        Py_XSETREF(func->func_kwdefaults, Py_XNewRef(like->func_kwdefaults));
    }
    MD_COUNT(functions_made);
    return made;
}
