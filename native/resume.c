/* ResumeFunction: a constant of emitted code that runs a continuation as part of the function it continues. */
#include "optimized.h"

#include "bind.h"
#include "tail.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyCodeObject *code;
    PyObject *name;
} MdResume;

/* Runs the code with globals, builtins and closure of the Python function that is calling: an entry's code leaves the call
 * to its runner (tail.h). The function object lives for the call only: a constant may not keep a user's closure. */
PyObject *md_resume_call(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    MdResume *self = (MdResume *)op;
    MdFrame *frame = md_current_frame(md_thread_state());
    PyFunctionObject *caller = frame != NULL ? md_frame_func(frame) : NULL;
    if (caller == NULL || !PyFunction_Check((PyObject *)caller)) {
        return PyErr_Format(PyExc_RuntimeError, "minidynamo: %R can be called by Python code only", op);
    }
    Py_ssize_t cells = caller->func_closure != NULL ? PyTuple_GET_SIZE(caller->func_closure) : 0;
    if (cells != self->code->co_nfreevars) {
        return PyErr_Format(PyExc_RuntimeError, "minidynamo: %R needs a closure of %d cell(s), its caller %U has %zd",
                            op, self->code->co_nfreevars, caller->func_qualname, cells);
    }
    MdCodeState *state = md_state(md_frame_code(frame));
    if (MD_LIKELY(state != NULL && state->mark == MD_TRANSFORMED && kwnames == NULL)) {
        return md_tail_new(caller, self->code, args, PyVectorcall_NARGS(nargsf));
    }
    PyObject *code = Py_NewRef((PyObject *)self->code); /* making a function may run the collector */
    PyObject *made = md_function_like(caller, (PyCodeObject *)code, false);
    Py_DECREF(code);
    if (made == NULL) {
        return NULL;
    }
    PyObject *result = PyObject_Vectorcall(made, args, nargsf, kwnames);
    Py_DECREF(made);
    return result;
}

static PyObject *resume_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "name", NULL};
    PyObject *code;
    PyObject *name = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|U:ResumeFunction", names, &PyCode_Type, &code, &name)) {
        return NULL;
    }
    MdResume *self = (MdResume *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = md_resume_call;
        self->code = (PyCodeObject *)Py_NewRef(code);
        self->name = Py_NewRef(name != NULL ? name : self->code->co_name);
    }
    return (PyObject *)self;
}

static void resume_dealloc(PyObject *op)
{
    MdResume *self = (MdResume *)op;
    Py_CLEAR(self->code);
    Py_CLEAR(self->name);
    Py_TYPE(op)->tp_free(op);
}

static PyObject *resume_repr(PyObject *op)
{
    MdResume *self = (MdResume *)op;
    return PyUnicode_FromFormat("<ResumeFunction %U>", self->name);
}

static PyMemberDef resume_members[] = {
    {"code", T_OBJECT, offsetof(MdResume, code), READONLY, "the continuation"},
    {"__code__", T_OBJECT, offsetof(MdResume, code), READONLY, "the continuation"},
    {"__name__", T_OBJECT, offsetof(MdResume, name), READONLY, NULL},
    {0},
};

PyTypeObject MdResume_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.ResumeFunction",
    .tp_basicsize = sizeof(MdResume),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "ResumeFunction(code, name=code.co_name)\n\n"
              "Runs code with the globals and the closure of the Python function that calls it.",
    .tp_new = resume_new,
    .tp_dealloc = resume_dealloc,
    .tp_repr = resume_repr,
    .tp_vectorcall_offset = offsetof(MdResume, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_members = resume_members,
};
