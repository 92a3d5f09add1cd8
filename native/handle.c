/* EntryHandle: how emitted code reaches the compiled graph without owning it. */
#include "optimized.h"
#include "tail.h"

static PyObject *handle_dead(void)
{
    PyErr_SetString(PyExc_RuntimeError,
                    "minidynamo: this code belongs to a cache entry that has been dropped, so what it calls is gone; "
                    "call the optimized function again instead of keeping the transformed code");
    return NULL;
}

/* Remembers type and message of the exception for the report of a re-run; the exception stays set. */
static void note_graph_error(MdEntry *entry)
{
    PyObject *exc = md_exc_take();
    md_thread.busy++; /* str(exc) may be the user's code: nothing is captured in it */
    PyObject *text = PyUnicode_FromFormat("%s: %S", Py_TYPE(exc)->tp_name, exc);
    if (text == NULL) {
        PyErr_Clear(); /* it cannot be printed: the type must do */
        text = PyUnicode_FromString(Py_TYPE(exc)->tp_name);
    }
    if (text == NULL) {
        PyErr_Clear(); /* no memory for that either: the report says "Exception" */
    }
    md_thread.busy--;
    Py_XSETREF(entry->graph_error, text);
    md_exc_put(exc);
}

static int check_outputs(PyObject *result, Py_ssize_t outputs)
{
    if (!PyTuple_Check(result) && !PyList_Check(result)) {
        PyErr_Format(PyExc_RuntimeError,
                     "minidynamo: the backend's function returned %.100s, but the graph has %zd output(s): it must "
                     "return a tuple or list of them; return (out,) for a single one",
                     Py_TYPE(result)->tp_name, outputs);
        return -1;
    }
    Py_ssize_t count = PyTuple_Check(result) ? PyTuple_GET_SIZE(result) : PyList_GET_SIZE(result);
    if (count != outputs) {
        PyErr_Format(PyExc_RuntimeError,
                     "minidynamo: the backend's function returned %zd value(s), but the graph has %zd output(s): it "
                     "must return one value for each output, in the graph's order",
                     count, outputs);
        return -1;
    }
    return 0;
}

PyObject *md_graph_result_slow(MdEntry *entry, PyObject *result, Py_ssize_t outputs)
{
    if (result != NULL && check_outputs(result, outputs) < 0) {
        Py_CLEAR(result);
    }
    if (result == NULL && entry != NULL) {
        note_graph_error(entry);
    }
    return result;
}

/* Inputs that fit on the C stack. */
#define MD_HANDLE_SMALL 16

/* What the guards of the entry have loaded for this run of its code, or what was given for a call without an entry. */
static int take_loaded(MdHandle *self, MdThread *t, MdInputs *inputs)
{
    if (self->entry != NULL && md_loaded_take(t, self->entry, inputs)) {
        return 0;
    }
    PyObject *given = self->entry == NULL ? self->given : NULL;
    if (given == NULL || PyTuple_GET_SIZE(given) != self->loaded_count) {
        PyErr_SetString(PyExc_RuntimeError,
                        "minidynamo: this code takes what the guards of its cache entry load: only a call of the "
                        "optimized function can run it");
        return -1;
    }
    if (md_inputs_make(inputs, self->loaded_count) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < inputs->count; i++) {
        inputs->place[i + 1] = Py_NewRef(PyTuple_GET_ITEM(given, i));
    }
    return 0;
}

/* Places arguments and loaded inputs at the graph's inputs, from place[1] on. The first `loaded_count` of self->loaded are
 * where the loaded ones go. */
static void merge(const MdHandle *self, PyObject *const *args, Py_ssize_t total, const MdInputs *inputs,
                  PyObject **place)
{
    Py_ssize_t next = 0;
    for (Py_ssize_t i = 0; i < total; i++) {
        bool loaded = next < self->loaded_count && self->loaded[next] == i;
        place[i + 1] = loaded ? inputs->place[++next] : *args++;
    }
}

/* A bound method's function is called itself, with the instance in the place before the arguments. */
static PyObject *call_plain(PyThreadState *ts, PyObject *target, PyObject *const *args, size_t nargsf,
                            PyObject *kwnames)
{
    if (!Py_IS_TYPE(target, &PyMethod_Type) || (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) == 0) {
        return md_call(ts, target, args, nargsf, kwnames);
    }
    PyObject **place = (PyObject **)args - 1, *before = *place;
    *place = PyMethod_GET_SELF(target);
    PyObject *result =
        md_call(ts, PyMethod_GET_FUNCTION(target), place, (size_t)PyVectorcall_NARGS(nargsf) + 1, kwnames);
    *place = before;
    return result;
}

static PyObject *call_target(MdThread *t, PyObject *target, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyThreadState *ts = md_thread_state();
    if (t->active == NULL) {
        return call_plain(ts, target, args, nargsf, kwnames);
    }
    MdScope scope;
    md_scope_enter(ts, t, &scope, NULL);
    PyObject *result = call_plain(ts, target, args, nargsf, kwnames);
    md_scope_leave(ts, t, &scope);
    return result;
}

static PyObject *call_loaded(MdHandle *self, MdThread *t, PyObject *target, PyObject *const *args, Py_ssize_t given)
{
    MdInputs inputs = {0};
    if (take_loaded(self, t, &inputs) < 0) {
        return NULL;
    }
    PyObject *room[MD_HANDLE_SMALL + 1];
    Py_ssize_t total = given + inputs.count;
    PyObject **place = given == 0 ? inputs.place : total <= MD_HANDLE_SMALL ? room : PyMem_New(PyObject *, total + 1);
    PyObject *result = NULL;
    if (place == NULL) {
        PyErr_NoMemory();
    }
    else if (self->loaded[self->loaded_count - 1] >= total) {
        PyErr_Format(PyExc_RuntimeError, "minidynamo: internal error: a graph was called with %zd arguments, too few",
                     given);
    }
    else {
        if (given > 0) {
            merge(self, args, total, &inputs, place);
        }
        result = call_target(t, target, place + 1, (size_t)total | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
    }
    if (place != inputs.place && place != room) {
        PyMem_Free(place);
    }
    md_inputs_free(&inputs);
    return result;
}

static PyObject *call_graph(MdHandle *self, PyObject *target, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    MdThread *t = &md_thread;
    MdEntry *entry = (MdEntry *)Py_XNewRef((PyObject *)self->entry);
    Py_ssize_t outputs = self->outputs;
    PyObject *result = self->loaded_count > 0 && kwnames == NULL
                           ? call_loaded(self, t, target, args, PyVectorcall_NARGS(nargsf))
                           : call_target(t, target, args, nargsf, kwnames);
    result = md_graph_result(entry, result, outputs);
    Py_XDECREF((PyObject *)entry);
    return result;
}

static PyObject *handle_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    MdHandle *self = (MdHandle *)op;
    PyObject *target = self->target;
    if (target == NULL) {
        return handle_dead();
    }
    if (Py_IS_TYPE(target, &MdResume_Type)) {
        return md_resume_call(target, args, nargsf, kwnames);
    }
    Py_INCREF(target);
    PyObject *result = self->outputs >= 0 ? call_graph(self, target, args, nargsf, kwnames)
                                          : PyObject_Vectorcall(target, args, nargsf, kwnames);
    Py_DECREF(target);
    return result;
}

PyObject *md_handle_bind(MdHandle *handle, MdEntry *entry)
{
    if (handle->bound || handle->target == NULL) {
        PyErr_SetString(PyExc_ValueError, "minidynamo: this EntryHandle belongs to a cache entry already");
        return NULL;
    }
    handle->bound = 1;
    handle->entry = entry;
    return handle->target;
}

void md_handle_unbind(MdHandle *handle, MdEntry *entry)
{
    if (handle->entry == entry) {
        handle->entry = NULL;
        handle->target = NULL;
    }
}

static int read_loaded(MdHandle *self, PyObject *loaded)
{
    Py_ssize_t count = PyTuple_GET_SIZE(loaded), before = -1;
    if (count > 0 && self->outputs < 0) {
        PyErr_SetString(PyExc_ValueError, "EntryHandle: only a graph (n_outputs >= 0) has loaded inputs");
        return -1;
    }
    self->loaded = PyMem_New(Py_ssize_t, count + 1);
    if (self->loaded == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t index = PyLong_AsSsize_t(PyTuple_GET_ITEM(loaded, i));
        if (index <= before) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_ValueError, "EntryHandle: `loaded` must be indexes of inputs, the lowest first");
            }
            return -1;
        }
        before = self->loaded[i] = index;
    }
    self->loaded_count = count;
    return 0;
}

static PyObject *handle_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"target", "n_outputs", "loaded", NULL};
    PyObject *target, *loaded = NULL;
    Py_ssize_t outputs = -1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|nO!:EntryHandle", names, &target, &outputs, &PyTuple_Type,
                                     &loaded)) {
        return NULL;
    }
    if (!PyCallable_Check(target)) {
        return PyErr_Format(PyExc_TypeError, "EntryHandle: the target must be callable, not %.100s",
                            Py_TYPE(target)->tp_name);
    }
    MdHandle *self = (MdHandle *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = handle_vectorcall;
        self->target = Py_NewRef(target);
        self->outputs = outputs;
    }
    if (self != NULL && loaded != NULL && read_loaded(self, loaded) < 0) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int handle_traverse(PyObject *op, visitproc visit, void *arg)
{
    MdHandle *self = (MdHandle *)op;
    if (!self->bound) {
        Py_VISIT(self->target);
    }
    Py_VISIT(self->given);
    return 0;
}

static int handle_clear(PyObject *op)
{
    MdHandle *self = (MdHandle *)op;
    if (!self->bound) {
        Py_CLEAR(self->target);
    }
    Py_CLEAR(self->given);
    return 0;
}

static void handle_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    handle_clear(op);
    PyMem_Free(((MdHandle *)op)->loaded);
    Py_TYPE(op)->tp_free(op);
}

static PyObject *handle_repr(PyObject *op)
{
    MdHandle *self = (MdHandle *)op;
    if (self->target == NULL) {
        return PyUnicode_FromString("<EntryHandle of a dropped entry>");
    }
    if (self->loaded_count > 0) {
        return PyUnicode_FromFormat("<EntryHandle %R, %zd input(s) loaded by guards>", self->target,
                                    self->loaded_count);
    }
    return PyUnicode_FromFormat("<EntryHandle %R>", self->target);
}

static PyObject *handle_get_target(PyObject *op, void *Py_UNUSED(closure))
{
    PyObject *target = ((MdHandle *)op)->target;
    return Py_NewRef(target != NULL ? target : Py_None);
}

static PyObject *handle_get_loaded(PyObject *op, void *Py_UNUSED(closure))
{
    MdHandle *self = (MdHandle *)op;
    PyObject *made = PyTuple_New(self->loaded_count);
    for (Py_ssize_t i = 0; made != NULL && i < self->loaded_count; i++) {
        PyObject *index = PyLong_FromSsize_t(self->loaded[i]);
        if (index == NULL) {
            Py_CLEAR(made);
            break;
        }
        PyTuple_SET_ITEM(made, i, index);
    }
    return made;
}

static PyObject *handle_get_given(PyObject *op, void *Py_UNUSED(closure))
{
    PyObject *given = ((MdHandle *)op)->given;
    return Py_NewRef(given != NULL ? given : Py_None);
}

static int handle_set_given(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
    if (value != NULL && value != Py_None && !PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "EntryHandle.given is a tuple or None, not %.100s", Py_TYPE(value)->tp_name);
        return -1;
    }
    Py_XSETREF(((MdHandle *)op)->given, value != NULL && value != Py_None ? Py_NewRef(value) : NULL);
    return 0;
}

static PyMemberDef handle_members[] = {
    {"n_outputs", T_PYSSIZET, offsetof(MdHandle, outputs), READONLY, "values that a call must return; -1: any result"},
    {"bound", T_BOOL, offsetof(MdHandle, bound), READONLY, "a cache entry owns the target"},
    {0},
};

static PyGetSetDef handle_getset[] = {
    {"loaded", handle_get_loaded, NULL, "which inputs of the graph the guards of the entry load", NULL},
    {"given", handle_get_given, handle_set_given, "what they load, for a call before there is an entry; or None", NULL},
    {"target", handle_get_target, NULL, "what is called; None once the entry is dead", NULL},
    {0},
};

PyTypeObject MdHandle_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.EntryHandle",
    .tp_basicsize = sizeof(MdHandle),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc =
        "EntryHandle(target, n_outputs=-1, loaded=())\n\n"
        "A hashable constant for code; calls go to the target. n_outputs >= 0 says that the target is a graph:\n"
        "it runs with capture off and must return a tuple or list of so many values (RuntimeError). `loaded` are\n"
        "those of its inputs that the guards of the entry load: calls pass the others only.",
    .tp_new = handle_new,
    .tp_dealloc = handle_dealloc,
    .tp_traverse = handle_traverse,
    .tp_clear = handle_clear,
    .tp_repr = handle_repr,
    .tp_vectorcall_offset = offsetof(MdHandle, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_members = handle_members,
    .tp_getset = handle_getset,
};
