/* A run of a guard program: by a snapshot where there is one, else instruction by instruction. */
#include "guard_run.h"

#define MD_REGISTERS_SMALL 48

static int run_all(MdRun *run, Py_ssize_t *failed)
{
    const MdInstr *code = run->self->code, *end = code + run->self->count;
    for (const MdInstr *ins = code; ins < end; ins++) {
        int outcome = md_guard_step(run, ins);
        if (MD_UNLIKELY(outcome <= 0)) {
            if (failed != NULL) {
                *failed = ins - code;
            }
            return outcome;
        }
    }
    return 1;
}

/* Tells the witness. The verdict, or -1 if it raised. */
static int attest(MdGuards *self, PyObject *const *values, int verdict)
{
    Py_ssize_t count = self->arguments + 2;
    PyObject *error = verdict < 0 ? md_exc_take() : NULL; /* a guard that raises is a failed guard */
    PyObject **args = PyMem_New(PyObject *, count + 1);
    int outcome = -1;
    if (args == NULL) {
        PyErr_NoMemory();
    }
    else {
        args[0] = verdict > 0 ? Py_True : Py_False;
        memcpy(args + 1, values, (size_t)count * sizeof(PyObject *));
        outcome = md_guard_call(self->witness, args, count + 1);
        PyMem_Free(args);
    }
    if (outcome < 0 || error == NULL) {
        Py_XDECREF(error);
        return outcome < 0 ? -1 : verdict;
    }
    md_exc_put(error);
    return -1;
}

int md_guards_hand_over(MdRun *run, MdInputs *inputs)
{
    Py_ssize_t count = run->self->input_count;
    if (md_inputs_make(inputs, count) < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        inputs->place[i + 1] = Py_NewRef(run->registers[run->self->inputs[i]]);
    }
    return 1;
}

/* Runs the whole program. */
static int run_program(MdGuards *self, PyObject *const *values, const TensorTls *tls, MdInputs *inputs,
                       Py_ssize_t *failed)
{
    PyObject *room[MD_REGISTERS_SMALL];
    MdRun run = {.self = self, .values = values, .registers = room, .tls = *tls};
    if (MD_UNLIKELY(self->registers > MD_REGISTERS_SMALL)) {
        run.registers = PyMem_New(PyObject *, self->registers);
        if (run.registers == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    memset(run.registers, 0, (size_t)self->registers * sizeof(PyObject *));
    int verdict = run_all(&run, failed);
    if (verdict > 0 && inputs != NULL) {
        verdict = md_guards_hand_over(&run, inputs);
    }
    for (Py_ssize_t i = 0; i < self->registers; i++) {
        Py_XDECREF(run.registers[i]);
    }
    if (MD_UNLIKELY(run.registers != room)) {
        PyMem_Free(run.registers);
    }
    return verdict;
}

int md_guards_run(MdGuards *self, PyObject *const *values, MdInputs *inputs, Py_ssize_t *failed)
{
    TensorTls tls = {0};
    if (self->reads_torch) {
        self->leaves->read_tls(&tls);
    }
    bool known = false;
    MdSnapshotVerdict seen = failed == NULL ? md_snapshots_run(self, values, &tls, inputs, &known) : MD_SNAPSHOT_UNSURE;
    int verdict = 1;
    if (MD_UNLIKELY(seen == MD_SNAPSHOT_FAILS)) {
        verdict = PyErr_Occurred() ? -1 : 0;
    }
    else if (MD_UNLIKELY(seen != MD_SNAPSHOT_HOLDS)) {
        verdict = run_program(self, values, &tls, inputs, failed);
    }
    if (MD_UNLIKELY(!known) && verdict > 0 && failed == NULL) {
        md_snapshots_learn(self, values, &tls);
    }
    return MD_LIKELY(self->witness == NULL) ? verdict : attest(self, values, verdict);
}
