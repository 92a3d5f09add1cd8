/* Somebody else's frame evaluators, for the tests of chaining. Not part of the product. */
#include "../frame_compat.h"

#define SLOTS 2

static struct {
    _PyFrameEvalFunction evaluator; /* what this slot installs */
    _PyFrameEvalFunction previous;  /* what was installed before it */
    int chains;                     /* hand frames to `previous`; else to CPython's own evaluator */
    long frames;
} slots[SLOTS];

static PyObject *evaluate(int slot, PyThreadState *ts, MdFrame *f, int throwflag)
{
    slots[slot].frames++;
    _PyFrameEvalFunction next = slots[slot].chains ? slots[slot].previous : _PyEval_EvalFrameDefault;
    return next(ts, f, throwflag);
}

static PyObject *evaluate_0(PyThreadState *ts, MdFrame *f, int throwflag)
{
    return evaluate(0, ts, f, throwflag);
}

static PyObject *evaluate_1(PyThreadState *ts, MdFrame *f, int throwflag)
{
    return evaluate(1, ts, f, throwflag);
}

static PyInterpreterState *interpreter(void)
{
    return PyInterpreterState_Get();
}

static PyObject *install(PyObject *Py_UNUSED(module), PyObject *args)
{
    int slot;
    int chains;
    if (!PyArg_ParseTuple(args, "ii:install", &slot, &chains) || slot < 0 || slot >= SLOTS) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no slot %d", slot);
    }
    slots[slot].previous = _PyInterpreterState_GetEvalFrameFunc(interpreter());
    slots[slot].chains = chains;
    _PyInterpreterState_SetEvalFrameFunc(interpreter(), slots[slot].evaluator);
    Py_RETURN_NONE;
}

/* Puts back what was there when the slot was installed, whatever is there now. */
static PyObject *restore(PyObject *Py_UNUSED(module), PyObject *args)
{
    int slot;
    if (!PyArg_ParseTuple(args, "i:restore", &slot) || slot < 0 || slot >= SLOTS) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "no slot %d", slot);
    }
    _PyInterpreterState_SetEvalFrameFunc(interpreter(), slots[slot].previous);
    Py_RETURN_NONE;
}

static PyObject *set_default(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    _PyInterpreterState_SetEvalFrameFunc(interpreter(), _PyEval_EvalFrameDefault);
    Py_RETURN_NONE;
}

/* The slot that is installed, -1 for CPython's own evaluator, -2 for any other. */
static PyObject *installed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    _PyFrameEvalFunction top = _PyInterpreterState_GetEvalFrameFunc(interpreter());
    for (int slot = 0; slot < SLOTS; slot++) {
        if (top == slots[slot].evaluator) {
            return PyLong_FromLong(slot);
        }
    }
    return PyLong_FromLong(top == _PyEval_EvalFrameDefault ? -1 : -2);
}

static PyObject *frames(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return Py_BuildValue("ll", slots[0].frames, slots[1].frames);
}

static PyMethodDef methods[] = {
    {"install", install, METH_VARARGS, "install(slot, chains)"},
    {"restore", restore, METH_VARARGS, "restore(slot)"},
    {"set_default", set_default, METH_NOARGS, "set_default()"},
    {"installed", installed, METH_NOARGS, "installed() -> slot | -1 | -2"},
    {"frames", frames, METH_NOARGS, "frames() -> frames seen by each slot"},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "foreign_eval",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_foreign_eval(void);

PyMODINIT_FUNC PyInit_foreign_eval(void)
{
    slots[0].evaluator = evaluate_0;
    slots[1].evaluator = evaluate_1;
    return PyModule_Create(&definition);
}
