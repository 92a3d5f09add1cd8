/* From the arguments of a call to flat arguments and back, and functions made to run a code object. */
#ifndef MD_BIND_H
#define MD_BIND_H

#include "cache.h"

typedef enum { MD_BOUND, MD_UNBOUND, MD_BIND_ERROR } MdBinding;

/* Binds call arguments (vectorcall convention) to the parameters of `func`, whose code is `code`. MD_BOUND: `flat` is
 * filled and must be freed. MD_UNBOUND: they do not fit, no exception is set and calling `func` raises the right
 * TypeError. MD_BIND_ERROR: exception set. */
static inline MdBinding md_bind(MdFlat *flat, PyFunctionObject *func, PyCodeObject *code, PyObject *const *args,
                                size_t nargsf, PyObject *kwnames);
/* The same, in general; md_bind itself has the case that one positional argument is given for each parameter. */
MdBinding md_bind_general(MdFlat *flat, PyFunctionObject *func, PyCodeObject *code, PyObject *const *args,
                          Py_ssize_t given, PyObject *kwnames);

static inline MdBinding md_bind(MdFlat *flat, PyFunctionObject *func, PyCodeObject *code, PyObject *const *args,
                                size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t given = PyVectorcall_NARGS(nargsf);
    if (MD_UNLIKELY(kwnames != NULL || given != code->co_argcount || !md_flat_is_positional(code))) {
        return md_bind_general(flat, func, code, args, given, kwnames);
    }
    if (md_flat_init(flat, given) < 0) {
        return MD_BIND_ERROR;
    }
    for (Py_ssize_t i = 0; i < given; i++) {
        flat->values[i] = args[i]; /* borrowed: the caller holds them during the call */
    }
    return MD_BOUND;
}

/* Calls `func`, whose code is `code`, so that its parameters receive the flat arguments. */
PyObject *md_call_flat(PyObject *func, PyCodeObject *code, PyObject *const *values);

/* A function that runs `code` with globals, builtins and closure of `like`; with its defaults, too, if `defaults`. */
PyObject *md_function_like(PyFunctionObject *like, PyCodeObject *code, bool defaults);

#endif
