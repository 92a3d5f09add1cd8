/* From the arguments of a call to flat arguments and back, and functions made to run a code object. */
#ifndef MD_BIND_H
#define MD_BIND_H

#include "cache.h"

typedef enum { MD_BOUND, MD_UNBOUND, MD_BIND_ERROR } MdBinding;

/* Binds call arguments (vectorcall convention) to the parameters of `func`, whose code is `code`. MD_BOUND: `flat` is
 * filled and must be freed. MD_UNBOUND: they do not fit, no exception is set and calling `func` raises the right
 * TypeError. MD_BIND_ERROR: exception set. */
MdBinding md_bind(MdFlat *flat, PyFunctionObject *func, PyCodeObject *code, PyObject *const *args, size_t nargsf,
                  PyObject *kwnames);

/* Calls `func`, whose code is `code`, so that its parameters receive the flat arguments. */
PyObject *md_call_flat(PyObject *func, PyCodeObject *code, PyObject *const *values);

/* A function that runs `code` with globals, builtins and closure of `like`; with its defaults, too, if `defaults`. */
PyObject *md_function_like(PyFunctionObject *like, PyCodeObject *code, bool defaults);

#endif
