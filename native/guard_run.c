/* A run of a guard program: by its snapshot where there is one, else instruction by instruction. */
#include "guard_run.h"

#include "stats.h"

#define MD_REGISTERS_SMALL 48
/* Runs without a snapshot after one that was of no use, at most; runs that one must answer to be of use. */
#define MD_LONGEST_WAIT 64
#define MD_WORTHWHILE 16

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

/* The program has held: is it time to remember what it saw? */
static void remember(MdGuards *self, PyObject *const *values, const TensorTls *tls)
{
    if (self->wait > 0) {
        self->wait--;
        return;
    }
    self->snapshot = md_snapshot_new(self, values, tls);
    self->served = 0;
    if (self->snapshot != NULL) {
        MD_COUNT(snapshots);
    }
    else {
        self->wait = MD_LONGEST_WAIT;
    }
}

/* The snapshot is no good any more. If they never are for long, fewer are made. */
static void forget(MdGuards *self)
{
    MdSnapshot *snapshot = self->snapshot;
    self->snapshot = NULL;
    md_snapshot_free(snapshot);
    self->penalty = self->served >= MD_WORTHWHILE ? 0 : Py_MIN(self->penalty * 2 + 1, MD_LONGEST_WAIT);
    self->wait = self->penalty;
}

int md_guards_run(MdGuards *self, PyObject *const *values, MdInputs *inputs, Py_ssize_t *failed)
{
    TensorTls tls = {0};
    if (self->reads_torch) {
        self->leaves->read_tls(&tls);
    }
    int verdict = -1;
    MdSnapshotVerdict seen = MD_SNAPSHOT_UNSURE;
    if (self->snapshot != NULL && failed == NULL) {
        seen = md_snapshot_run(self, values, &tls, inputs);
        self->served++;
    }
    switch (seen) {
    case MD_SNAPSHOT_HOLDS:
        verdict = 1;
        break;
    case MD_SNAPSHOT_FAILS:
        verdict = PyErr_Occurred() ? -1 : 0;
        break;
    case MD_SNAPSHOT_GONE:
        forget(self);
        verdict = run_program(self, values, &tls, inputs, failed);
        break;
    case MD_SNAPSHOT_UNSURE:
        verdict = run_program(self, values, &tls, inputs, failed);
        if (verdict > 0 && self->snapshot == NULL && failed == NULL) {
            remember(self, values, &tls);
        }
        break;
    }
    return MD_LIKELY(self->witness == NULL) ? verdict : attest(self, values, verdict);
}
