/* CacheEntry: one compiled version of a code object. */
#include "entry.h"

#include "cache.h"
#include "direct.h"
#include "guard_vm.h"

/* ---- making one ---- */

static PyObject *required(PyObject *guarded, const char *name, PyTypeObject *type)
{
    PyObject *value = PyObject_GetAttrString(guarded, name);
    if (value != NULL && type != NULL && !PyObject_TypeCheck(value, type)) {
        PyErr_Format(PyExc_TypeError, "cache entry: `%s` must be %.100s, not %.100s", name, type->tp_name,
                     Py_TYPE(value)->tp_name);
        Py_CLEAR(value);
    }
    return value;
}

static int required_flag(PyObject *guarded, const char *name, char *flag)
{
    PyObject *value = PyObject_GetAttrString(guarded, name);
    int truth = value != NULL ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    *flag = truth > 0;
    return truth < 0 ? -1 : 0;
}

/* Does a handle take what the guards load? They must load just that. */
static int find_loaded(MdEntry *self)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self->handles); i++) {
        Py_ssize_t wanted = ((MdHandle *)PyTuple_GET_ITEM(self->handles, i))->loaded_count;
        bool program = Py_IS_TYPE(self->check_fn, &MdGuards_Type);
        if (wanted > 0 && (self->takes_loaded || !program || ((MdGuards *)self->check_fn)->input_count != wanted)) {
            PyErr_Format(PyExc_ValueError,
                         "cache entry: `check_fn` must be a GuardProgram that loads the %zd inputs of its one handle "
                         "with `loaded`",
                         wanted);
            return -1;
        }
        self->takes_loaded = self->takes_loaded || wanted > 0;
    }
    return 0;
}

static int bind_handles(MdEntry *self)
{
    Py_ssize_t count = PyTuple_GET_SIZE(self->handles);
    self->targets = PyTuple_New(count);
    if (self->targets == NULL) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *handle = PyTuple_GET_ITEM(self->handles, i);
        if (!Py_IS_TYPE(handle, &MdHandle_Type)) {
            PyErr_Format(PyExc_TypeError, "cache entry: `handles` must be EntryHandle objects, not %.100s",
                         Py_TYPE(handle)->tp_name);
            return -1;
        }
        PyObject *target = md_handle_bind((MdHandle *)handle, self);
        if (target == NULL) {
            return -1;
        }
        PyTuple_SET_ITEM(self->targets, i, target);
    }
    return find_loaded(self);
}

/* The optional attribute `direct`; handles are bound, and the flat arguments of the code are those of the original. */
static int make_direct(MdEntry *self, PyObject *guarded)
{
    PyObject *spec = PyObject_GetAttrString(guarded, "direct");
    if (spec == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear();
        return 0;
    }
    if (spec != Py_None && (self->has_break || !self->rerunnable)) {
        PyErr_SetString(PyExc_ValueError, "cache entry: with `direct` it must be rerunnable and have no break");
    }
    else if (spec != Py_None) {
        bool program = Py_IS_TYPE(self->check_fn, &MdGuards_Type);
        Py_ssize_t loaded = program ? ((MdGuards *)self->check_fn)->input_count : -1;
        self->direct = md_direct_new(spec, self->handles, md_flat_count(self->code), loaded);
    }
    int failed = spec != Py_None && self->direct == NULL;
    Py_DECREF(spec);
    return failed ? -1 : 0;
}

MdEntry *md_entry_new(MdKey *key, PyObject *owner, PyObject *guarded)
{
    static uint64_t serial;
    MdEntry *self = (MdEntry *)MdEntry_Type.tp_alloc(&MdEntry_Type, 0);
    if (self == NULL) {
        return NULL;
    }
    if ((self->code = (PyCodeObject *)required(guarded, "code", &PyCode_Type)) == NULL
        || (self->check_fn = required(guarded, "check_fn", NULL)) == NULL
        || (self->validity = (MdValidity *)required(guarded, "validity", &MdValidity_Type)) == NULL
        || (self->handles = required(guarded, "handles", &PyTuple_Type)) == NULL
        || (self->owned = required(guarded, "owned", &PyTuple_Type)) == NULL
        || (self->payload = required(guarded, "payload", NULL)) == NULL
        || (self->owner = PyWeakref_NewRef(owner, NULL)) == NULL
        || required_flag(guarded, "has_break", &self->has_break) < 0
        || required_flag(guarded, "rerunnable", &self->rerunnable) < 0) {
        goto failed;
    }
    if (!PyCallable_Check(self->check_fn)) {
        PyErr_Format(PyExc_TypeError, "cache entry: `check_fn` must be callable, not %.100s",
                     Py_TYPE(self->check_fn)->tp_name);
        goto failed;
    }
    Py_ssize_t arguments = md_flat_count(self->code);
    if (Py_IS_TYPE(self->check_fn, &MdGuards_Type) && ((MdGuards *)self->check_fn)->arguments != arguments) {
        PyErr_Format(PyExc_ValueError, "cache entry: `check_fn` takes %zd flat arguments, the code has %zd",
                     ((MdGuards *)self->check_fn)->arguments, arguments);
        goto failed;
    }
    if (bind_handles(self) < 0 || make_direct(self, guarded) < 0) {
        goto failed;
    }
    self->serial = ++serial; /* after the last line that may run Python code: entries are linked in this order */
    self->key = key;
    self->key_prev = key->last;
    if (key->last != NULL) {
        key->last->key_next = self;
    }
    else {
        key->first = self;
    }
    key->last = (MdEntry *)Py_NewRef((PyObject *)self);
    return self;
failed:
    Py_DECREF((PyObject *)self);
    return NULL;
}

/* ---- leaving ---- */

void md_entry_drop(MdEntry *entry)
{
    md_cache_unlink(entry);
    Py_XDECREF((PyObject *)md_key_release(entry));
}

static int entry_traverse(PyObject *op, visitproc visit, void *arg)
{
    MdEntry *self = (MdEntry *)op;
    Py_VISIT(self->check_fn);
    Py_VISIT(self->code);
    Py_VISIT(self->validity);
    Py_VISIT(self->handles);
    Py_VISIT(self->targets);
    Py_VISIT(self->owned);
    Py_VISIT(self->payload);
    Py_VISIT(self->owner);
    return self->direct != NULL ? md_direct_traverse(self->direct, visit, arg) : 0;
}

static void unbind_handles(MdEntry *self)
{
    for (Py_ssize_t i = 0; self->handles != NULL && i < PyTuple_GET_SIZE(self->handles); i++) {
        PyObject *handle = PyTuple_GET_ITEM(self->handles, i);
        if (Py_IS_TYPE(handle, &MdHandle_Type)) {
            md_handle_unbind((MdHandle *)handle, self);
        }
    }
}

static int entry_clear(PyObject *op)
{
    MdEntry *self = (MdEntry *)op;
    md_cache_unlink(self);
    unbind_handles(self);
    MdDirect *direct = self->direct;
    self->direct = NULL;
    if (direct != NULL) {
        md_direct_free(direct);
    }
    Py_CLEAR(self->check_fn);
    Py_CLEAR(self->code);
    Py_CLEAR(self->validity);
    Py_CLEAR(self->handles);
    Py_CLEAR(self->targets);
    Py_CLEAR(self->owned);
    Py_CLEAR(self->payload);
    Py_CLEAR(self->owner);
    Py_CLEAR(self->last_error);
    Py_CLEAR(self->graph_error);
    return 0;
}

static void entry_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    entry_clear(op);
    Py_TYPE(op)->tp_free(op);
}

/* ---- guard failures ---- */

int md_entry_guard_failed(MdEntry *self)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyObject *exc = md_exc_take();
    if (self->last_error == NULL) {
        /* text, since the exception itself would keep frames and the user's objects alive */
        PyObject *text = PyUnicode_FromFormat("%s: %S", Py_TYPE(exc)->tp_name, exc);
        if (text == NULL) {
            PyErr_Clear(); /* str(exc) raised, too: the type must do */
            text = PyUnicode_FromString(Py_TYPE(exc)->tp_name);
        }
        if (text == NULL) {
            PyErr_Clear();
        }
        Py_XSETREF(self->last_error, text);
    }
    Py_DECREF(exc);
    return 0;
}

/* ---- Python ---- */

static PyObject *or_none(void *value)
{
    return Py_NewRef(value != NULL ? (PyObject *)value : Py_None);
}

static PyObject *get_original_code(PyObject *op, void *Py_UNUSED(closure))
{
    return or_none(md_state_code(((MdEntry *)op)->state));
}

static PyObject *get_key(PyObject *op, void *Py_UNUSED(closure))
{
    return or_none(((MdEntry *)op)->key);
}

static PyObject *get_next(PyObject *op, void *Py_UNUSED(closure))
{
    return or_none(((MdEntry *)op)->next);
}

static PyObject *get_valid(PyObject *op, void *Py_UNUSED(closure))
{
    MdEntry *self = (MdEntry *)op;
    return PyBool_FromLong(self->state != NULL && self->validity != NULL && self->validity->valid);
}

static PyObject *get_direct(PyObject *op, void *Py_UNUSED(closure))
{
    MdDirect *direct = ((MdEntry *)op)->direct;
    return or_none(direct != NULL ? md_direct_spec(direct) : NULL);
}

static int set_valid(PyObject *op, PyObject *value, void *Py_UNUSED(closure))
{
    MdEntry *self = (MdEntry *)op;
    int truth = value != NULL ? PyObject_IsTrue(value) : -1;
    if (truth < 0) {
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_AttributeError, "CacheEntry.valid cannot be deleted");
        }
        return -1;
    }
    if (self->validity != NULL) {
        self->validity->valid = (char)truth;
    }
    return 0;
}

static PyObject *get_owner_id(PyObject *op, void *Py_UNUSED(closure))
{
    MdEntry *self = (MdEntry *)op;
    PyObject *owner = self->owner != NULL ? PyObject_CallNoArgs(self->owner) : Py_NewRef(Py_None);
    if (owner == NULL) {
        return NULL;
    }
    PyObject *id = PyLong_FromVoidPtr(owner == Py_None ? NULL : owner);
    Py_DECREF(owner);
    return id;
}

static PyObject *get_hits(PyObject *op, void *Py_UNUSED(closure))
{
    MdEntry *self = (MdEntry *)op;
    return PyLong_FromUnsignedLongLong(self->validity != NULL ? self->validity->hits : 0);
}

static PyObject *entry_repr(PyObject *op)
{
    MdEntry *self = (MdEntry *)op;
    if (self->code == NULL) {
        return PyUnicode_FromString("<CacheEntry, dead>");
    }
    return PyUnicode_FromFormat("<CacheEntry of %U line %d, %llu hit(s)%s>", self->code->co_qualname,
                                self->code->co_firstlineno, (unsigned long long)self->validity->hits,
                                self->state == NULL ? ", dropped" : "");
}

static PyMemberDef entry_members[] = {
    {"check_fn", T_OBJECT, offsetof(MdEntry, check_fn), READONLY, "check_fn(*flat args, globals, closure | None)"},
    {"code", T_OBJECT, offsetof(MdEntry, code), READONLY, "the code that runs on a hit"},
    {"has_break", T_BOOL, offsetof(MdEntry, has_break), READONLY, "the code leaves the graph before it returns"},
    {"rerunnable", T_BOOL, offsetof(MdEntry, rerunnable), READONLY, "a failed graph call is run again in plain Python"},
    {"handles", T_OBJECT, offsetof(MdEntry, handles), READONLY, "its EntryHandle objects"},
    {"guarded", T_OBJECT, offsetof(MdEntry, payload), READONLY, "what the compiler gave for reports"},
    {"last_error", T_OBJECT, offsetof(MdEntry, last_error), READONLY,
     "'Type: message' of the first exception that check_fn raised"},
    {"serial", T_ULONGLONG, offsetof(MdEntry, serial), READONLY, "grows with every entry of the process"},
    {0},
};

static PyGetSetDef entry_getset[] = {
    {"original_code", get_original_code, NULL, "the code object it serves; None once the entry is out", NULL},
    {"key", get_key, NULL, "the CompileKey that owns it; None once the entry is out", NULL},
    {"next", get_next, NULL, "the next entry of the same code object", NULL},
    {"hits", get_hits, NULL, "how often it ran, its first run not counted", NULL},
    {"valid", get_valid, set_valid, "it is in the cache and nothing has declared it dead", NULL},
    {"direct", get_direct, NULL, "(handle, inputs, recipe) if C calls the graph and builds the result; None", NULL},
    {"owner_ctx_id", get_owner_id, NULL, "id() of the OptimizeContext that made it; 0 if that is gone", NULL},
    {0},
};

PyTypeObject MdEntry_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.CacheEntry",
    .tp_basicsize = sizeof(MdEntry),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "One compiled version of a code object: guards, and the code that runs when they hold.",
    .tp_dealloc = entry_dealloc,
    .tp_traverse = entry_traverse,
    .tp_clear = entry_clear,
    .tp_repr = entry_repr,
    .tp_members = entry_members,
    .tp_getset = entry_getset,
};
