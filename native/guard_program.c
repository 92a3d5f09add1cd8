/* GuardProgram: made of the instructions of guards/lower.py, all of them checked here. */
#include "guard_run.h"

#include "entry.h"
#include "stats.h"

typedef enum {
    MD_INPUT_NONE,
    MD_INPUT_REG,
} Input;

typedef enum {
    MD_OPERAND_NONE,
    MD_OPERAND_INDEX,
    MD_OPERAND_STR,
    MD_OPERAND_PTR,
    MD_OPERAND_CONST,
    MD_OPERAND_CONSTS,
    MD_OPERAND_NAMES,
    MD_OPERAND_REG,
    MD_OPERAND_REGS,
    MD_OPERAND_SPEC,
    MD_OPERAND_TEXT,
} Operand;

static const struct {
    const char *name;
    Input input;
    Operand operand;
} ops[] = {
#define GUARD_OP(name, input, operand, doc) {#name, MD_INPUT_##input, MD_OPERAND_##operand},
#include "../minidynamo/guards/guard_ops.def"
#undef GUARD_OP
};

const TensorLeafApi *md_tensor_leaves;

static bool is_load(MdGuardOp op)
{
    return ops[op].name[0] == 'L';
}

static int malformed(MdGuardOp op, const char *what)
{
    PyErr_Format(PyExc_ValueError, "GuardProgram: %s: %s", ops[op].name, what);
    return -1;
}

/* ---- operands ---- */

static int make_const(MdGuardOp op, PyObject *operand, MdConst *out)
{
    if (!PyTuple_Check(operand) || PyTuple_GET_SIZE(operand) != 2 || !PyLong_Check(PyTuple_GET_ITEM(operand, 0))) {
        return malformed(op, "a constant is a tuple (kind, object)");
    }
    long kind = PyLong_AsLong(PyTuple_GET_ITEM(operand, 0));
    PyObject *object = PyTuple_GET_ITEM(operand, 1);
    if (kind < 0 || kind >= MD_CONST_COUNT || (kind == MD_CONST_WEAK && !Py_IS_TYPE(object, &_PyWeakref_RefType))) {
        return malformed(op, "no such kind of constant, or a weak one without weakref.ref");
    }
    *out = (MdConst){.object = Py_NewRef(object), .hash = -1, .kind = (MdConstKind)kind};
    PyObject *target = md_const_get(out);
    if (target != NULL) {
        out->hash = PyObject_Hash(target);
        PyErr_Clear(); /* a key that cannot be hashed is in no dict */
        Py_DECREF(target);
    }
    return 0;
}

static void free_constants(MdConst *constants, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; constants != NULL && i < count; i++) {
        Py_XDECREF(constants[i].object);
    }
    PyMem_Free(constants);
}

/* `count` constants; the caller has made sure that `operands` are so many. */
static MdConst *make_constants(MdGuardOp op, PyObject *const *operands, Py_ssize_t count)
{
    MdConst *made = PyMem_Calloc((size_t)count + 1, sizeof(MdConst));
    if (made == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (make_const(op, operands[i], &made[i]) < 0) {
            free_constants(made, i);
            return NULL;
        }
    }
    return made;
}

/* Constants that are interned names. */
static MdConst *make_names(MdGuardOp op, PyObject *operand)
{
    if (!PyTuple_Check(operand)) {
        malformed(op, "a tuple of str is needed");
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(operand);
    MdConst *made = PyMem_Calloc((size_t)count + 1, sizeof(MdConst));
    if (made == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GET_ITEM(operand, i);
        if (!PyUnicode_CheckExact(name)) {
            malformed(op, "a tuple of str is needed");
            free_constants(made, i);
            return NULL;
        }
        made[i] = (MdConst){.object = Py_NewRef(name), .kind = MD_CONST_LITERAL};
        PyUnicode_InternInPlace(&made[i].object);
        made[i].hash = PyObject_Hash(made[i].object);
    }
    return made;
}

static int read_index(MdGuardOp op, PyObject *operand, Py_ssize_t *out)
{
    *out = PyLong_Check(operand) ? PyLong_AsSsize_t(operand) : -1;
    if (PyErr_Occurred()) {
        return -1;
    }
    return *out >= 0 ? 0 : malformed(op, "a non-negative int is needed");
}

static int read_register(MdGuardOp op, PyObject *operand, Py_ssize_t loaded, Py_ssize_t *out)
{
    if (read_index(op, operand, out) < 0) {
        return -1;
    }
    return *out < loaded ? 0 : malformed(op, "a register is used before it is loaded");
}

/* (count, register, ...) */
static int make_registers(MdInstr *ins, MdGuardOp op, PyObject *operand, Py_ssize_t loaded)
{
    Py_ssize_t own;
    if (!PyTuple_Check(operand) || PyTuple_GET_SIZE(operand) < 1
        || read_index(op, PyTuple_GET_ITEM(operand, 0), &own) < 0 || own >= PyTuple_GET_SIZE(operand)) {
        return PyErr_Occurred() ? -1 : malformed(op, "a tuple (count, register, ...) is needed");
    }
    Py_ssize_t all = PyTuple_GET_SIZE(operand) - 1;
    ins->registers = PyMem_New(Py_ssize_t, all + 1);
    if (ins->registers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    ins->index = all;
    ins->bits = (uint64_t)own;
    for (Py_ssize_t i = 0; i < all; i++) {
        if (read_register(op, PyTuple_GET_ITEM(operand, i + 1), loaded, &ins->registers[i]) < 0) {
            return -1;
        }
    }
    return 0;
}

/* What torch is asked: its leaf, or the state of its thread. */
static int make_spec(MdGuards *self, MdInstr *ins, MdGuardOp op, PyObject *operand)
{
    self->reads_torch = true;
    if (self->leaves == NULL) {
        const TensorLeafApi *leaves = PyCapsule_Import(TENSOR_LEAF_CAPSULE, 0);
        if (leaves == NULL) {
            return -1;
        }
        if (leaves->version != TENSOR_LEAF_VERSION) {
            return malformed(op, "minidynamo._tensor_guards is of another build; run `make build`");
        }
        self->leaves = md_tensor_leaves = leaves;
    }
    if (op == MD_OP_CHECK_TENSOR) {
        ins->leaf = self->leaves->make(operand);
        return ins->leaf != NULL ? 0 : -1;
    }
    if (!PyTuple_Check(operand) || PyTuple_GET_SIZE(operand) != 2 || !PyUnicode_Check(PyTuple_GET_ITEM(operand, 1))) {
        return malformed(op, "a tuple (bits, default dtype) is needed");
    }
    ins->bits = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(operand, 0));
    if (PyErr_Occurred()) {
        return -1;
    }
    ins->object = Py_NewRef(PyTuple_GET_ITEM(operand, 1));
    PyUnicode_InternInPlace(&ins->object);
    return 0;
}

static int make_operand(MdGuards *self, MdInstr *ins, MdGuardOp op, PyObject *operand, Py_ssize_t loaded)
{
    switch (ops[op].operand) {
    case MD_OPERAND_NONE:
        return 0;
    case MD_OPERAND_INDEX:
        return read_index(op, operand, &ins->index);
    case MD_OPERAND_REG:
        return read_register(op, operand, loaded, &ins->index);
    case MD_OPERAND_REGS:
        return make_registers(ins, op, operand, loaded);
    case MD_OPERAND_PTR:
        ins->pointer = PyLong_AsVoidPtr(operand);
        return PyErr_Occurred() ? -1 : 0;
    case MD_OPERAND_STR:
        if (!PyUnicode_CheckExact(operand)) {
            return malformed(op, "a str is needed");
        }
        ins->object = Py_NewRef(operand);
        PyUnicode_InternInPlace(&ins->object);
        return PyObject_Hash(ins->object) != -1 ? 0 : -1;
    case MD_OPERAND_CONST:
        ins->constants = make_constants(op, &operand, 1);
        if (ins->constants == NULL) {
            return -1;
        }
        ins->index = -1;
        if (ins->constants->kind == MD_CONST_LITERAL && PyLong_CheckExact(ins->constants->object)) {
            ins->index = PyLong_AsSsize_t(ins->constants->object);
            PyErr_Clear(); /* too large for an index of a sequence */
        }
        return 0;
    case MD_OPERAND_CONSTS:
        if (!PyTuple_Check(operand)) {
            return malformed(op, "a tuple of constants is needed");
        }
        ins->constants = make_constants(op, &PyTuple_GET_ITEM(operand, 0), PyTuple_GET_SIZE(operand));
        ins->index = PyTuple_GET_SIZE(operand);
        return ins->constants != NULL ? 0 : -1;
    case MD_OPERAND_NAMES:
        ins->constants = make_names(op, operand);
        ins->index = ins->constants != NULL ? PyTuple_GET_SIZE(operand) : 0;
        return ins->constants != NULL ? 0 : -1;
    case MD_OPERAND_SPEC:
        return make_spec(self, ins, op, operand);
    case MD_OPERAND_TEXT:
        if (!PyCallable_Check(operand)) {
            return malformed(op, "the compiled text is needed");
        }
        ins->object = Py_NewRef(operand);
        return 0;
    }
    return malformed(op, "no such operand");
}

static void free_operand(MdGuards *self, MdInstr *ins)
{
    switch (ops[ins->op].operand) {
    case MD_OPERAND_STR:
    case MD_OPERAND_TEXT:
        Py_CLEAR(ins->object);
        break;
    case MD_OPERAND_SPEC:
        if (ins->op == MD_OP_CHECK_TENSOR) {
            if (ins->leaf != NULL) {
                self->leaves->free(ins->leaf);
                ins->leaf = NULL;
            }
            break;
        }
        Py_CLEAR(ins->object);
        break;
    case MD_OPERAND_CONST:
        free_constants(ins->constants, 1);
        ins->constants = NULL;
        break;
    case MD_OPERAND_CONSTS:
    case MD_OPERAND_NAMES:
        free_constants(ins->constants, ins->index);
        ins->constants = NULL;
        break;
    case MD_OPERAND_REGS:
        PyMem_Free(ins->registers);
        ins->registers = NULL;
        break;
    default:
        break;
    }
}

/* ---- the object ---- */

static int make_instruction(MdGuards *self, MdInstr *ins, PyObject *given)
{
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 3) {
        PyErr_SetString(PyExc_ValueError, "GuardProgram: an instruction is a tuple (opcode, register, operand)");
        return -1;
    }
    long opcode = PyLong_AsLong(PyTuple_GET_ITEM(given, 0));
    if (opcode < 0 || opcode >= MD_OP_COUNT) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "GuardProgram: there is no opcode %ld", opcode);
        }
        return -1;
    }
    MdGuardOp op = (MdGuardOp)opcode;
    Py_ssize_t in = -1;
    if (ops[op].input == MD_INPUT_REG && read_register(op, PyTuple_GET_ITEM(given, 1), self->registers, &in) < 0) {
        return -1;
    }
    ins->op = (uint16_t)op;
    ins->in = (int32_t)in;
    if (in >= 0 && is_load(op)) {
        for (Py_ssize_t i = 0; i < self->count; i++) {
            self->code[i].stepped = self->code[i].stepped || self->code[i].out == in;
        }
    }
    ins->out = -1;
    self->count++; /* from here on it is freed with the program */
    PyObject *operand = PyTuple_GET_ITEM(given, 2);
    if (make_operand(self, ins, op, operand, self->registers) < 0) {
        return -1;
    }
    if (op == MD_OP_LOAD_LOCAL && ins->index >= self->arguments) {
        return malformed(op, "there is no such argument");
    }
    if (is_load(op)) {
        ins->out = (int32_t)self->registers++;
    }
    return 0;
}

static int make_inputs(MdGuards *self, PyObject *registers)
{
    Py_ssize_t count = PyTuple_GET_SIZE(registers);
    self->inputs = PyMem_New(Py_ssize_t, count + 1);
    if (self->inputs == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    self->input_count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t index = PyLong_AsSsize_t(PyTuple_GET_ITEM(registers, i));
        if (index < 0 || index >= self->registers) {
            if (!PyErr_Occurred()) {
                PyErr_Format(PyExc_ValueError, "GuardProgram: there is no register %zd for an input", index);
            }
            return -1;
        }
        self->inputs[i] = index;
    }
    return 0;
}

static PyObject *guards_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames);

static PyObject *optional(PyObject *value)
{
    return value != Py_None ? Py_NewRef(value) : NULL;
}

static PyObject *guards_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "arguments", "builtins", "validity", "witness", "inputs", NULL};
    PyObject *code, *builtins = Py_None, *validity = Py_None, *witness = Py_None, *inputs = NULL;
    Py_ssize_t arguments;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!n|OOOO!:GuardProgram", names, &PyTuple_Type, &code, &arguments,
                                     &builtins, &validity, &witness, &PyTuple_Type, &inputs)) {
        return NULL;
    }
    if ((builtins != Py_None && !PyDict_Check(builtins)) || arguments < 0) {
        PyErr_SetString(PyExc_TypeError, "GuardProgram: builtins must be a dict or None, arguments their number");
        return NULL;
    }
    if (validity != Py_None && !PyObject_TypeCheck(validity, &MdValidity_Type)) {
        PyErr_SetString(PyExc_TypeError, "GuardProgram: validity must be a Validity or None");
        return NULL;
    }
    if (witness != Py_None && !PyCallable_Check(witness)) {
        PyErr_SetString(PyExc_TypeError, "GuardProgram: witness must be callable or None");
        return NULL;
    }
    if (md_guard_objects_init() < 0) {
        return NULL;
    }
    MdGuards *self = (MdGuards *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    Py_ssize_t count = PyTuple_GET_SIZE(code);
    self->vectorcall = guards_vectorcall;
    self->arguments = arguments;
    md_snapshots_init(&self->remembered);
    self->builtins = optional(builtins);
    self->validity = optional(validity);
    self->witness = optional(witness);
    self->code = PyMem_Calloc((size_t)count + 1, sizeof(MdInstr));
    if (self->code == NULL) {
        PyErr_NoMemory();
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (make_instruction(self, &self->code[i], PyTuple_GET_ITEM(code, i)) < 0) {
            Py_DECREF((PyObject *)self);
            return NULL;
        }
    }
    if (inputs != NULL && make_inputs(self, inputs) < 0) {
        Py_DECREF((PyObject *)self);
        return NULL;
    }
    return (PyObject *)self;
}

/* Visits or clears (`visit` NULL) what an instruction holds. */
static int guards_traverse(PyObject *op, visitproc visit, void *arg)
{
    MdGuards *self = (MdGuards *)op;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        MdInstr *ins = &self->code[i];
        Operand kind = ops[ins->op].operand;
        if (kind == MD_OPERAND_TEXT) {
            Py_VISIT(ins->object);
        }
        Py_ssize_t constants = kind == MD_OPERAND_CONST ? 1 : kind == MD_OPERAND_CONSTS ? ins->index : 0;
        for (Py_ssize_t j = 0; ins->constants != NULL && j < constants; j++) {
            Py_VISIT(ins->constants[j].object);
        }
    }
    Py_VISIT(self->builtins);
    Py_VISIT(self->validity);
    Py_VISIT(self->witness);
    return 0;
}

static int guards_clear(PyObject *op)
{
    MdGuards *self = (MdGuards *)op;
    Py_ssize_t count = self->count;
    self->count = 0; /* nothing runs any more, whatever the destructors below do */
    md_snapshots_clear(&self->remembered);
    for (Py_ssize_t i = 0; i < count; i++) {
        free_operand(self, &self->code[i]);
    }
    Py_CLEAR(self->builtins);
    Py_CLEAR(self->validity);
    Py_CLEAR(self->witness);
    return 0;
}

static void guards_dealloc(PyObject *op)
{
    PyObject_GC_UnTrack(op);
    guards_clear(op);
    PyMem_Free(((MdGuards *)op)->code);
    PyMem_Free(((MdGuards *)op)->inputs);
    Py_TYPE(op)->tp_free(op);
}

/* ---- Python ---- */

static bool arity(MdGuards *self, Py_ssize_t given, const char *function)
{
    if (given == self->arguments + 2) {
        return true;
    }
    PyErr_Format(PyExc_TypeError, "%s takes %zd argument(s), globals and closure | None (%zd given)", function,
                 self->arguments, given);
    return false;
}

static bool is_valid(const MdGuards *self)
{
    return self->validity == NULL || ((MdValidity *)self->validity)->valid;
}

static PyObject *guards_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    MdGuards *self = (MdGuards *)op;
    if (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0) {
        PyErr_SetString(PyExc_TypeError, "a GuardProgram takes no keyword arguments");
        return NULL;
    }
    if (!arity(self, PyVectorcall_NARGS(nargsf), "a GuardProgram")) {
        return NULL;
    }
    if (!is_valid(self)) {
        Py_RETURN_FALSE;
    }
    int verdict = md_guards_run(self, args, NULL, NULL);
    return verdict < 0 ? NULL : PyBool_FromLong(verdict);
}

static PyObject *guards_failed(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    MdGuards *self = (MdGuards *)op;
    if (!arity(self, count, "GuardProgram.failed")) {
        return NULL;
    }
    Py_ssize_t failed = -1;
    if (md_guards_run(self, args, NULL, &failed) < 0 && !PyErr_ExceptionMatches(PyExc_Exception)) {
        return NULL;
    }
    PyErr_Clear(); /* a guard that raises is a failed guard */
    return PyLong_FromSsize_t(failed);
}

static PyObject *guards_load(PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    MdGuards *self = (MdGuards *)op;
    if (!arity(self, count, "GuardProgram.load")) {
        return NULL;
    }
    MdInputs inputs = {0};
    int verdict = md_guards_run(self, args, &inputs, NULL);
    if (verdict <= 0) {
        md_inputs_free(&inputs);
        return verdict < 0 ? NULL : Py_NewRef(Py_None);
    }
    PyObject *made = PyTuple_New(inputs.count);
    for (Py_ssize_t i = 0; made != NULL && i < inputs.count; i++) {
        PyTuple_SET_ITEM(made, i, Py_NewRef(inputs.place[i + 1]));
    }
    md_inputs_free(&inputs);
    return made;
}

static PyMethodDef guards_methods[] = {
    {"load", (PyCFunction)(void (*)(void))guards_load, METH_FASTCALL,
     "load(*flat arguments, globals, closure | None) -> tuple of the inputs, or None if a guard does not hold"},
    {"failed", (PyCFunction)(void (*)(void))guards_failed, METH_FASTCALL,
     "failed(*flat arguments, globals, closure | None) -> index of the first instruction that does not hold, or -1"},
    {0},
};

static PyObject *guards_snapshot(PyObject *op, void *Py_UNUSED(closure))
{
    const MdGuards *self = (MdGuards *)op;
    const MdSnapshot *latest = md_snapshots_latest(&self->remembered);
    return latest != NULL ? md_snapshot_counts(latest) : Py_NewRef(Py_None);
}

static PyObject *guards_snapshots(PyObject *op, void *Py_UNUSED(closure))
{
    const MdSnapshots *set = &((MdGuards *)op)->remembered;
    PyObject *all = PyList_New(0);
    for (size_t i = 0; all != NULL && i < Py_ARRAY_LENGTH(set->of); i++) {
        PyObject *one = set->of[i] != NULL ? md_snapshot_counts(set->of[i]) : NULL;
        if (set->of[i] != NULL && (one == NULL || PyList_Append(all, one) < 0)) {
            Py_CLEAR(all);
        }
        Py_XDECREF(one);
    }
    return all;
}

static PyGetSetDef guards_getset[] = {
    {"snapshot", guards_snapshot, NULL,
     "{'roots', 'words', 'fixed', 'keys', 'watches', 'tensors': what a run compares, 'rest', 'late': how many\n"
     "instructions it runs, 'common'} of the one that has answered last, or None",
     NULL},
    {"snapshots", guards_snapshots, NULL, "the same of all that there are, the common one last", NULL},
    {0},
};

static PyMemberDef guards_members[] = {
    {"instructions", T_PYSSIZET, offsetof(MdGuards, count), READONLY, "how many there are"},
    {"registers", T_PYSSIZET, offsetof(MdGuards, registers), READONLY, "how many the loads fill"},
    {"arguments", T_PYSSIZET, offsetof(MdGuards, arguments), READONLY, "flat arguments that it takes"},
    {"witness", T_OBJECT, offsetof(MdGuards, witness), READONLY, "called with the verdict after each run, or None"},
    {0},
};

PyTypeObject MdGuards_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "minidynamo._C.GuardProgram",
    .tp_basicsize = sizeof(MdGuards),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "GuardProgram(code, arguments, builtins=None, validity=None, witness=None, inputs=())\n\n"
              "Guards as instructions (opcode, register, operand) of guard_ops.def. A call with the flat arguments,\n"
              "globals and closure (or None) says whether all hold; what a guard raises, the call raises.\n"
              "witness(verdict, *the same) is called after each run, and what it raises, the call raises.\n"
              "inputs: registers with what the graph of a direct entry takes, in its order.",
    .tp_new = guards_new,
    .tp_dealloc = guards_dealloc,
    .tp_traverse = guards_traverse,
    .tp_clear = guards_clear,
    .tp_vectorcall_offset = offsetof(MdGuards, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_methods = guards_methods,
    .tp_members = guards_members,
    .tp_getset = guards_getset,
};
