/* Running a guard program: one function per row of guard_ops.def, which a missing function does not compile without. */
#include "guard_vm.h"

#include "stats.h"
#include "thread.h"

#define MD_REGISTERS_SMALL 48

typedef struct {
    const MdGuards *self;
    PyObject *const *values;
    PyObject **registers; /* references of ours, NULL until loaded */
    TensorTls tls;
} Run;

/* Every function below says: 1 it holds (or is loaded), 0 it does not, -1 with an exception that it raised. */

static inline int load(Run *run, const MdInstr *ins, PyObject *value)
{
    run->registers[ins->out] = value;
    return MD_LIKELY(value != NULL) ? 1 : PyErr_Occurred() ? -1 : 0;
}

static inline int load_borrowed(Run *run, const MdInstr *ins, PyObject *value)
{
    return load(run, ins, Py_XNewRef(value));
}

static inline PyObject *input(const Run *run, const MdInstr *ins)
{
    return run->registers[ins->in];
}

static inline PyObject *globals(const Run *run)
{
    return run->values[run->self->arguments];
}

/* ---- roots ---- */

static inline int op_LOAD_LOCAL(Run *run, const MdInstr *ins)
{
    return load_borrowed(run, ins, run->values[ins->index]);
}

static inline int op_LOAD_GLOBALS(Run *run, const MdInstr *ins)
{
    return load_borrowed(run, ins, globals(run));
}

static inline int op_LOAD_GLOBAL(Run *run, const MdInstr *ins)
{
    return load_borrowed(run, ins, PyDict_GetItemWithError(globals(run), ins->object));
}

static inline int op_LOAD_BUILTIN(Run *run, const MdInstr *ins)
{
    PyObject *builtins = run->self->builtins;
    return builtins != NULL ? load_borrowed(run, ins, PyDict_GetItemWithError(builtins, ins->object)) : 0;
}

static inline int op_LOAD_MODULES(Run *run, const MdInstr *ins)
{
    return load_borrowed(run, ins, PyImport_GetModuleDict());
}

static inline int load_content(Run *run, const MdInstr *ins, PyObject *cells)
{
    if (cells == NULL || !PyTuple_CheckExact(cells) || ins->index >= PyTuple_GET_SIZE(cells)) {
        return 0;
    }
    PyObject *cell = PyTuple_GET_ITEM(cells, ins->index);
    return PyCell_Check(cell) ? load_borrowed(run, ins, PyCell_GET(cell)) : 0;
}

static inline int op_LOAD_CLOSURE(Run *run, const MdInstr *ins)
{
    return load_content(run, ins, run->values[run->self->arguments + 1]);
}

/* ---- steps ---- */

static inline int op_LOAD_ATTR(Run *run, const MdInstr *ins)
{
    return load(run, ins, md_static_attr(input(run, ins), ins->object));
}

static inline int op_LOAD_MEMBER(Run *run, const MdInstr *ins)
{
    return op_LOAD_ATTR(run, ins);
}

/* The item of a dict, whatever its type makes of a missing one (borrowed). */
static inline PyObject *dict_item(PyObject *dict, const MdConst *key)
{
    if (MD_LIKELY(key->kind != MD_CONST_WEAK)) {
        return key->hash != -1 ? _PyDict_GetItem_KnownHash(dict, key->object, key->hash) : NULL;
    }
    PyObject *object = md_const_get(key);
    PyObject *value = object != NULL ? _PyDict_GetItem_KnownHash(dict, object, key->hash) : NULL;
    Py_XDECREF(object);
    return value;
}

static int general_item(Run *run, const MdInstr *ins, PyObject *value)
{
    PyObject *key = md_const_get(ins->constants);
    PyObject *item = key != NULL ? PyObject_GetItem(value, key) : NULL;
    Py_XDECREF(key);
    return load(run, ins, item);
}

static inline int op_LOAD_ITEM(Run *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    if (PyDict_Check(value)) {
        return load_borrowed(run, ins, dict_item(value, ins->constants));
    }
    Py_ssize_t index = ins->index;
    if (index >= 0 && PyTuple_Check(value)) {
        return index < PyTuple_GET_SIZE(value) ? load_borrowed(run, ins, PyTuple_GET_ITEM(value, index)) : 0;
    }
    if (index >= 0 && PyList_Check(value)) {
        return index < PyList_GET_SIZE(value) ? load_borrowed(run, ins, PyList_GET_ITEM(value, index)) : 0;
    }
    return general_item(run, ins, value);
}

static inline int op_LOAD_DICT_ITEM(Run *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    return PyDict_Check(value) ? load_borrowed(run, ins, dict_item(value, ins->constants)) : 0;
}

static inline int op_LOAD_DICT_KEY(Run *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    return PyDict_Check(value) ? load(run, ins, md_dict_key(value, ins->index)) : 0;
}

static inline int op_LOAD_TYPE(Run *run, const MdInstr *ins)
{
    return load_borrowed(run, ins, (PyObject *)Py_TYPE(input(run, ins)));
}

static inline int op_LOAD_WEAKREF(Run *run, const MdInstr *ins)
{
    PyObject *ref = input(run, ins);
    if (!Py_IS_TYPE(ref, &_PyWeakref_RefType)) {
        return 0;
    }
    PyObject *target = md_weakref_target(ref);
    return load(run, ins, target != NULL ? target : Py_NewRef(Py_None));
}

static inline PyFunctionObject *function(const Run *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    return PyFunction_Check(value) ? (PyFunctionObject *)value : NULL;
}

static inline int op_LOAD_CODE(Run *run, const MdInstr *ins)
{
    PyFunctionObject *fn = function(run, ins);
    return fn != NULL ? load_borrowed(run, ins, fn->func_code) : 0;
}

static inline int op_LOAD_DEFAULT(Run *run, const MdInstr *ins)
{
    PyFunctionObject *fn = function(run, ins);
    PyObject *defaults = fn != NULL ? fn->func_defaults : NULL;
    if (defaults == NULL || ins->index >= PyTuple_GET_SIZE(defaults)) {
        return 0;
    }
    return load_borrowed(run, ins, PyTuple_GET_ITEM(defaults, ins->index));
}

static inline int op_LOAD_KWDEFAULT(Run *run, const MdInstr *ins)
{
    PyFunctionObject *fn = function(run, ins);
    PyObject *defaults = fn != NULL ? fn->func_kwdefaults : NULL;
    return defaults != NULL ? load_borrowed(run, ins, PyDict_GetItemWithError(defaults, ins->object)) : 0;
}

static inline int op_LOAD_CELL(Run *run, const MdInstr *ins)
{
    PyFunctionObject *fn = function(run, ins);
    return fn != NULL ? load_content(run, ins, fn->func_closure) : 0;
}

/* ---- checks ---- */

static inline int op_CHECK_TYPE_ID(Run *run, const MdInstr *ins)
{
    return Py_TYPE(input(run, ins)) == ins->pointer;
}

static inline int op_CHECK_OBJ_ID(Run *run, const MdInstr *ins)
{
    return input(run, ins) == ins->pointer;
}

static inline int op_CHECK_CODE_ID(Run *run, const MdInstr *ins)
{
    PyFunctionObject *fn = function(run, ins);
    return fn != NULL && fn->func_code == ins->pointer;
}

static inline int op_CHECK_IS_CONST(Run *run, const MdInstr *ins)
{
    return input(run, ins) == ins->constants->object;
}

static inline int op_CHECK_IS(Run *run, const MdInstr *ins)
{
    return input(run, ins) == run->registers[ins->index];
}

static inline int op_CHECK_IS_NOT(Run *run, const MdInstr *ins)
{
    return input(run, ins) != run->registers[ins->index];
}

static inline int op_CHECK_EQUAL(Run *run, const MdInstr *ins)
{
    return md_const_same(ins->constants, input(run, ins));
}

static inline int op_CHECK_SAME(Run *run, const MdInstr *ins)
{
    return md_const_same(ins->constants, input(run, ins));
}

static inline int op_CHECK_LENGTH(Run *run, const MdInstr *ins)
{
    return md_static_len(input(run, ins)) == ins->index;
}

static inline int op_CHECK_STATE(Run *run, const MdInstr *ins)
{
    return run->self->leaves->check_global_state(&run->tls, ins->bits, ins->object);
}

/* 1 - (an answer), errors as they are. */
static inline int negated(int answer)
{
    return answer < 0 ? answer : !answer;
}

/* Is there a value (stolen; NULL: no, or an exception)? */
static inline int found(PyObject *value)
{
    Py_XDECREF(value);
    return value != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

static inline int op_CHECK_NO_GLOBAL(Run *run, const MdInstr *ins)
{
    return negated(found(Py_XNewRef(PyDict_GetItemWithError(globals(run), ins->object))));
}

static inline int op_CHECK_ATTR(Run *run, const MdInstr *ins)
{
    return found(md_static_attr(input(run, ins), ins->object));
}

static inline int op_CHECK_NO_ATTR(Run *run, const MdInstr *ins)
{
    return negated(op_CHECK_ATTR(run, ins));
}

/* 1, 0, -1; and 2 for what is no dict. */
static inline int has_key(Run *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    if (!PyDict_Check(value)) {
        return 2;
    }
    if (ins->constants->kind == MD_CONST_WEAK) {
        PyObject *object = md_const_get(ins->constants);
        if (object == NULL) {
            return 2; /* the text cannot name the key */
        }
        Py_DECREF(object);
    }
    return found(Py_XNewRef(dict_item(value, ins->constants)));
}

static inline int op_CHECK_KEY(Run *run, const MdInstr *ins)
{
    int answer = has_key(run, ins);
    return answer == 2 ? 0 : answer;
}

static inline int op_CHECK_NO_KEY(Run *run, const MdInstr *ins)
{
    int answer = has_key(run, ins);
    return answer == 2 ? 0 : negated(answer);
}

static inline int op_CHECK_DICT_KEYS(Run *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    return PyDict_Check(value) ? md_dict_keys_same(value, ins->constants, ins->index) : 0;
}

/* 1, 0, -1; and 2 when the text cannot name the element. */
static int has_element(Run *run, const MdInstr *ins)
{
    PyObject *set = input(run, ins);
    PyObject *element = md_const_get(ins->constants);
    if (element == NULL) {
        return 2;
    }
    int answer = PyAnySet_CheckExact(set) ? PySet_Contains(set, element) : 0;
    Py_DECREF(element);
    return answer;
}

static inline int op_CHECK_SET_HAS(Run *run, const MdInstr *ins)
{
    int answer = has_element(run, ins);
    return answer == 2 ? 0 : answer;
}

static inline int op_CHECK_SET_LACKS(Run *run, const MdInstr *ins)
{
    int answer = has_element(run, ins);
    return answer == 2 ? 0 : negated(answer);
}

static inline int op_CHECK_SET_ITEMS(Run *run, const MdInstr *ins)
{
    return md_set_items_same(input(run, ins), ins->constants, ins->index);
}

static inline int op_CHECK_SET_ORDER(Run *run, const MdInstr *ins)
{
    return md_set_order_same(input(run, ins), ins->constants, ins->index);
}

static inline int op_CHECK_WEAKREF(Run *run, const MdInstr *ins)
{
    PyObject *ref = input(run, ins);
    return Py_IS_TYPE(ref, &_PyWeakref_RefType) ? found(md_weakref_target(ref)) : 0;
}

static inline int op_CHECK_ITERATOR(Run *run, const MdInstr *ins)
{
    Py_ssize_t left = md_iterator_len(input(run, ins));
    return left == ins->index ? 1 : PyErr_Occurred() ? -1 : 0;
}

static inline int op_CHECK_TENSOR(Run *run, const MdInstr *ins)
{
    return run->self->leaves->check(ins->leaf, &run->tls, input(run, ins));
}

/* Each of the first registers against all others: a table of addresses where there are many. */
static int op_CHECK_DISTINCT(Run *run, const MdInstr *ins)
{
    Py_ssize_t own = (Py_ssize_t)ins->bits, all = ins->index;
    if (own * all > MD_DISTINCT_QUADRATIC) {
        return md_all_distinct(run->registers, ins->registers, own, all);
    }
    for (Py_ssize_t i = 0; i < own; i++) {
        PyObject *value = run->registers[ins->registers[i]];
        for (Py_ssize_t j = i + 1; j < all; j++) {
            if (value == run->registers[ins->registers[j]]) {
                return 0;
            }
        }
    }
    return 1;
}

static int call_python(PyObject *callable, PyObject *const *args, Py_ssize_t count)
{
    MdThread *t = &md_thread;
    t->busy++;
    PyObject *result = PyObject_Vectorcall(callable, args, (size_t)count, NULL);
    t->busy--;
    int truth = result == Py_True ? 1 : result == NULL ? -1 : PyObject_IsTrue(result);
    Py_XDECREF(result);
    return truth;
}

static int op_CHECK_PY(Run *run, const MdInstr *ins)
{
    MD_COUNT(guards_python);
    return call_python(ins->object, run->values, run->self->arguments + 2);
}

/* ---- a run ---- */

static inline int step(Run *run, const MdInstr *ins)
{
    switch ((MdGuardOp)ins->op) {
#define GUARD_OP(name, input, operand, doc) \
    case MD_OP_##name: \
        return op_##name(run, ins);
#include "../minidynamo/guards/guard_ops.def"
#undef GUARD_OP
    case MD_OP_COUNT:
        break;
    }
    Py_UNREACHABLE();
}

static int run_all(Run *run, Py_ssize_t *failed)
{
    const MdInstr *code = run->self->code, *end = code + run->self->count;
    for (const MdInstr *ins = code; ins < end; ins++) {
        int outcome = step(run, ins);
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
        outcome = call_python(self->witness, args, count + 1);
        PyMem_Free(args);
    }
    if (outcome < 0 || error == NULL) {
        Py_XDECREF(error);
        return outcome < 0 ? -1 : verdict;
    }
    md_exc_put(error);
    return -1;
}

static int hand_over(Run *run, MdInputs *inputs)
{
    Py_ssize_t count = run->self->input_count;
    inputs->place = PyMem_New(PyObject *, count + 1);
    if (inputs->place == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    inputs->count = count;
    for (Py_ssize_t i = 0; i < count; i++) {
        inputs->place[i + 1] = Py_NewRef(run->registers[run->self->inputs[i]]);
    }
    return 1;
}

int md_guards_run(MdGuards *self, PyObject *const *values, MdInputs *inputs, Py_ssize_t *failed)
{
    PyObject *room[MD_REGISTERS_SMALL];
    Run run = {.self = self, .values = values, .registers = room};
    if (MD_UNLIKELY(self->registers > MD_REGISTERS_SMALL)) {
        run.registers = PyMem_New(PyObject *, self->registers);
        if (run.registers == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    memset(run.registers, 0, (size_t)self->registers * sizeof(PyObject *));
    if (self->reads_torch) {
        self->leaves->read_tls(&run.tls);
    }
    int verdict = run_all(&run, failed);
    if (verdict > 0 && inputs != NULL) {
        verdict = hand_over(&run, inputs);
    }
    for (Py_ssize_t i = 0; i < self->registers; i++) {
        Py_XDECREF(run.registers[i]);
    }
    if (MD_UNLIKELY(run.registers != room)) {
        PyMem_Free(run.registers);
    }
    return MD_LIKELY(self->witness == NULL) ? verdict : attest(self, values, verdict);
}
