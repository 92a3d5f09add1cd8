/* The surface of OptimizedFunction: it looks, binds, pickles and prints like the function that it wraps. */
#include "optimized.h"

#include "stance.h"

static PyObject *optimized_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"fn", "ctx", "hides_frame", NULL};
    PyObject *fn;
    PyObject *context = Py_None;
    int hides_frame = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O$p:OptimizedFunction", names, &fn, &context, &hides_frame)) {
        return NULL;
    }
    if (!PyCallable_Check(fn)) {
        return PyErr_Format(PyExc_TypeError, "OptimizedFunction: fn must be callable, not %.100s",
                            Py_TYPE(fn)->tp_name);
    }
    if (context != Py_None && !PyObject_TypeCheck(context, &MdContext_Type)) {
        return PyErr_Format(PyExc_TypeError, "OptimizedFunction: ctx must be an OptimizeContext or None, not %.100s",
                            Py_TYPE(context)->tp_name);
    }
    if (!PyFunction_Check(fn) && !PyType_IsSubtype(type, &MdOptimizedCallable_Type)) {
        if (type != &MdOptimized_Type) {
            return PyErr_Format(PyExc_TypeError,
                                "%.100s wraps Python functions, not %.100s; derive it from "
                                "OptimizedCallable",
                                type->tp_name, Py_TYPE(fn)->tp_name);
        }
        type = &MdOptimizedCallable_Type;
    }
    MdOptimized *self = (MdOptimized *)type->tp_alloc(type, 0);
    if (self != NULL) {
        md_stance_join(self);
        self->fn = Py_NewRef(fn);
        self->hides_frame = hides_frame != 0;
        self->context = context != Py_None ? (MdContext *)Py_NewRef(context) : NULL;
    }
    return (PyObject *)self;
}

static int optimized_traverse(PyObject *op, visitproc visit, void *arg)
{
    MdOptimized *self = (MdOptimized *)op;
    Py_VISIT(self->fn);
    Py_VISIT(self->context);
    Py_VISIT(self->dict);
    for (int i = 0; i < MD_RUNNERS; i++) {
        Py_VISIT(self->runners[i].func);
    }
    return 0;
}

static int optimized_clear(PyObject *op)
{
    MdOptimized *self = (MdOptimized *)op;
    md_optimized_drop_runners(self);
    Py_CLEAR(self->fn);
    Py_CLEAR(self->context);
    Py_CLEAR(self->dict);
    return 0;
}

static void optimized_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    md_stance_leave((MdOptimized *)op);
    if (((MdOptimized *)op)->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    optimized_clear(op);
    Py_TYPE(op)->tp_free(op);
}

/* ---- binding ---- */

static PyObject *bind_as_function(PyObject *op, PyObject *instance, PyObject *Py_UNUSED(owner))
{
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(op);
    }
    return PyMethod_New(op, instance);
}

static PyObject *bind_as_wrapped(PyObject *op, PyObject *instance, PyObject *owner)
{
    MdOptimized *self = (MdOptimized *)op;
    descrgetfunc get = self->fn != NULL ? Py_TYPE(self->fn)->tp_descr_get : NULL;
    if (get == NULL) {
        return Py_NewRef(op);
    }
    PyObject *bound = get(self->fn, instance, owner);
    if (bound == NULL || bound == self->fn) {
        Py_XDECREF(bound);
        return bound == NULL ? NULL : Py_NewRef(op);
    }
    PyObject *context = self->context != NULL ? (PyObject *)self->context : Py_None;
    PyObject *result = PyObject_CallFunctionObjArgs((PyObject *)&MdOptimized_Type, bound, context, NULL);
    Py_DECREF(bound);
    return result;
}

/* ---- attributes ---- */

/* What is not found here is looked for on the wrapped function. */
static PyObject *optimized_getattro(PyObject *op, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(op, name);
    PyObject *fn = ((MdOptimized *)op)->fn;
    if (value != NULL || fn == NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return value;
    }
    PyErr_Clear();
    return PyObject_GetAttr(fn, name);
}

/* Attributes that the type has as well, so that they must be forwarded one by one. Set on the wrapper, they stay there
 * (functools.update_wrapper). */
static PyObject *get_described(PyObject *op, void *name)
{
    MdOptimized *self = (MdOptimized *)op;
    if (self->dict != NULL) {
        PyObject *key = PyUnicode_FromString(name);
        PyObject *own = key != NULL ? PyDict_GetItemWithError(self->dict, key) : NULL;
        Py_XDECREF(key);
        if (own != NULL) {
            return Py_NewRef(own);
        }
        if (PyErr_Occurred()) {
            return NULL;
        }
    }
    if (strcmp(name, "__wrapped__") == 0) {
        return Py_NewRef(self->fn != NULL ? self->fn : Py_None);
    }
    return PyObject_GetAttrString(self->fn != NULL ? self->fn : Py_None, name);
}

static int set_described(PyObject *op, PyObject *value, void *name)
{
    PyObject *dict = PyObject_GenericGetDict(op, NULL);
    if (dict == NULL) {
        return -1;
    }
    int failed = value != NULL ? PyDict_SetItemString(dict, name, value) : PyDict_DelItemString(dict, name);
    Py_DECREF(dict);
    return failed;
}

/* Attributes that say how the function runs: set on the wrapper, they are set on the function, where calls read them. */
static PyObject *get_forwarded(PyObject *op, void *name)
{
    PyObject *fn = ((MdOptimized *)op)->fn;
    return PyObject_GetAttrString(fn != NULL ? fn : Py_None, name);
}

static int set_forwarded(PyObject *op, PyObject *value, void *name)
{
    PyObject *fn = ((MdOptimized *)op)->fn;
    return PyObject_SetAttrString(fn != NULL ? fn : Py_None, name, value);
}

static PyObject *get_context(PyObject *op, void *Py_UNUSED(closure))
{
    MdContext *context = ((MdOptimized *)op)->context;
    return Py_NewRef(context != NULL ? (PyObject *)context : Py_None);
}

#define DESCRIBED(name) {name, get_described, set_described, NULL, name}
#define FORWARDED(name) {name, get_forwarded, set_forwarded, NULL, name}

static PyGetSetDef optimized_getset[] = {
    DESCRIBED("__doc__"),
    DESCRIBED("__module__"),
    DESCRIBED("__name__"),
    DESCRIBED("__qualname__"),
    DESCRIBED("__wrapped__"),
    FORWARDED("__code__"),
    FORWARDED("__defaults__"),
    FORWARDED("__kwdefaults__"),
    FORWARDED("__globals__"),
    FORWARDED("__closure__"),
    FORWARDED("__annotations__"),
    FORWARDED("__type_params__"),
    {"ctx", get_context, NULL, "the OptimizeContext of its calls; None: capture is off in them", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {0},
};

/* ---- copying, pickling, printing ---- */

static PyObject *optimized_reduce(PyObject *op, PyObject *Py_UNUSED(unused))
{
    return PyObject_GetAttrString(op, "__qualname__");
}

static PyObject *optimized_copy(PyObject *op, PyObject *Py_UNUSED(memo))
{
    return Py_NewRef(op);
}

static PyMethodDef optimized_methods[] = {
    {"__reduce__", optimized_reduce, METH_NOARGS, "pickled by qualified name, as functions are"},
    {"__copy__", optimized_copy, METH_NOARGS, "itself, as for functions"},
    {"__deepcopy__", optimized_copy, METH_O, "itself, as for functions"},
    {0},
};

static PyObject *optimized_repr(PyObject *op)
{
    MdOptimized *self = (MdOptimized *)op;
    return PyUnicode_FromFormat("<%s %R>", self->context != NULL ? "optimized" : "disabled", self->fn);
}

PyTypeObject MdOptimized_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.OptimizedFunction",
    .tp_basicsize = sizeof(MdOptimized),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE
                | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_doc = "OptimizedFunction(fn, ctx=None)\n\n"
              "Calls fn with ctx active: cache entries are used, and made where none fits. ctx None: with capture off.",
    .tp_new = optimized_new,
    .tp_dealloc = optimized_dealloc,
    .tp_traverse = optimized_traverse,
    .tp_clear = optimized_clear,
    .tp_repr = optimized_repr,
    .tp_vectorcall_offset = offsetof(MdOptimized, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_descr_get = bind_as_function,
    .tp_getattro = optimized_getattro,
    .tp_methods = optimized_methods,
    .tp_getset = optimized_getset,
    .tp_dictoffset = offsetof(MdOptimized, dict),
    .tp_weaklistoffset = offsetof(MdOptimized, weakrefs),
};

PyTypeObject MdOptimizedCallable_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.OptimizedCallable",
    .tp_basicsize = sizeof(MdOptimized),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
    .tp_doc = "An OptimizedFunction around something that is no Python function; bound to instances as that is.",
    .tp_base = &MdOptimized_Type,
    .tp_vectorcall_offset = offsetof(MdOptimized, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = optimized_traverse,
    .tp_clear = optimized_clear,
    .tp_descr_get = bind_as_wrapped,
};
