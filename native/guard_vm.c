/* The instructions of guard programs: one function per row of guard_ops.def, which a missing function does not compile without. */
#include "guard_run.h"

#include "stats.h"
#include "thread.h"

/* A load: `value` is a new reference, which a pure run cannot keep. */
static inline int load(MdRun *run, const MdInstr *ins, PyObject *value)
{
    run->registers[ins->out] = value;
    return MD_LIKELY(value != NULL) ? 1 : PyErr_Occurred() ? -1 : 0;
}

static inline int load_borrowed(MdRun *run, const MdInstr *ins, PyObject *value)
{
    run->registers[ins->out] = run->pure ? value : Py_XNewRef(value);
    return MD_LIKELY(value != NULL) ? 1 : !run->pure && PyErr_Occurred() ? -1 : 0;
}

/* A look-up of a str in `dict`. Does a pure run know what it finds? */
static inline bool knows(const MdRun *run, PyObject *dict)
{
    return !run->pure || md_dict_has_str_keys(dict);
}

static inline PyObject *input(const MdRun *run, const MdInstr *ins)
{
    return run->registers[ins->in];
}

static inline PyObject *globals(const MdRun *run)
{
    return run->values[run->self->arguments];
}

/* ---- roots ---- */

static inline int op_LOAD_LOCAL(MdRun *run, const MdInstr *ins)
{
    return load_borrowed(run, ins, run->values[ins->index]);
}

static inline int op_LOAD_GLOBALS(MdRun *run, const MdInstr *ins)
{
    return load_borrowed(run, ins, globals(run));
}

static inline int op_LOAD_GLOBAL(MdRun *run, const MdInstr *ins)
{
    PyObject *dict = globals(run);
    return knows(run, dict) ? load_borrowed(run, ins, PyDict_GetItemWithError(dict, ins->object)) : MD_UNSURE;
}

static inline int op_LOAD_BUILTIN(MdRun *run, const MdInstr *ins)
{
    PyObject *builtins = run->self->builtins;
    if (builtins == NULL) {
        return 0;
    }
    return knows(run, builtins) ? load_borrowed(run, ins, PyDict_GetItemWithError(builtins, ins->object)) : MD_UNSURE;
}

static inline int op_LOAD_MODULES(MdRun *run, const MdInstr *ins)
{
    return load_borrowed(run, ins, PyImport_GetModuleDict());
}

static inline int load_content(MdRun *run, const MdInstr *ins, PyObject *cells)
{
    if (cells == NULL || !PyTuple_CheckExact(cells) || ins->index >= PyTuple_GET_SIZE(cells)) {
        return 0;
    }
    PyObject *cell = PyTuple_GET_ITEM(cells, ins->index);
    return PyCell_Check(cell) ? load_borrowed(run, ins, PyCell_GET(cell)) : 0;
}

static inline int op_LOAD_CLOSURE(MdRun *run, const MdInstr *ins)
{
    return load_content(run, ins, run->values[run->self->arguments + 1]);
}

/* ---- steps ---- */

static inline int op_LOAD_ATTR(MdRun *run, const MdInstr *ins)
{
    MdFound at = md_find_attr(input(run, ins), ins->object);
    if (MD_LIKELY(at.where != MD_FOUND_OTHERWISE)) {
        return load_borrowed(run, ins, at.value);
    }
    return run->pure ? MD_UNSURE : load(run, ins, md_static_attr(input(run, ins), ins->object));
}

static inline int op_LOAD_MEMBER(MdRun *run, const MdInstr *ins)
{
    return op_LOAD_ATTR(run, ins);
}

/* The item of a dict, whatever its type makes of a missing one: `*value` is borrowed. 1, 0, -1, MD_UNSURE. */
static inline int dict_item(const MdRun *run, PyObject *dict, const MdConst *key, PyObject **value)
{
    *value = NULL;
    if (MD_LIKELY(key->kind != MD_CONST_WEAK)) {
        if (!knows(run, dict) || (run->pure && !PyUnicode_CheckExact(key->object))) {
            return MD_UNSURE;
        }
        *value = key->hash != -1 ? _PyDict_GetItem_KnownHash(dict, key->object, key->hash) : NULL;
    }
    else if (run->pure) {
        return MD_UNSURE;
    }
    else {
        PyObject *object = md_const_get(key);
        *value = object != NULL ? _PyDict_GetItem_KnownHash(dict, object, key->hash) : NULL;
        Py_XDECREF(object);
    }
    return MD_LIKELY(*value != NULL) ? 1 : PyErr_Occurred() ? -1 : 0;
}

static inline int load_dict_item(MdRun *run, const MdInstr *ins, PyObject *dict)
{
    PyObject *value;
    int there = dict_item(run, dict, ins->constants, &value);
    return MD_LIKELY(there > 0) ? load_borrowed(run, ins, value) : there;
}

static int general_item(MdRun *run, const MdInstr *ins, PyObject *value)
{
    if (run->pure) {
        return MD_UNSURE;
    }
    PyObject *key = md_const_get(ins->constants);
    PyObject *item = key != NULL ? PyObject_GetItem(value, key) : NULL;
    Py_XDECREF(key);
    return load(run, ins, item);
}

static inline int op_LOAD_ITEM(MdRun *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    if (PyDict_Check(value)) {
        return load_dict_item(run, ins, value);
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

static inline int op_LOAD_DICT_ITEM(MdRun *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    return PyDict_Check(value) ? load_dict_item(run, ins, value) : 0;
}

static inline int op_LOAD_DICT_KEY(MdRun *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    if (!PyDict_Check(value)) {
        return 0;
    }
    if (run->pure && PyODict_Check(value)) {
        return MD_UNSURE;
    }
    PyObject *key = md_dict_key(value, ins->index);
    if (run->pure) {
        Py_XDECREF(key); /* the dict has it */
    }
    return load(run, ins, key);
}

static inline int op_LOAD_TYPE(MdRun *run, const MdInstr *ins)
{
    return load_borrowed(run, ins, (PyObject *)Py_TYPE(input(run, ins)));
}

static inline int op_LOAD_WEAKREF(MdRun *run, const MdInstr *ins)
{
    PyObject *ref = input(run, ins);
    if (!Py_IS_TYPE(ref, &_PyWeakref_RefType)) {
        return 0;
    }
    PyObject *target = md_weakref_target(ref);
    int outcome = load_borrowed(run, ins, target != NULL ? target : Py_None);
    Py_XDECREF(target); /* somebody else has it, or the register */
    return outcome;
}

static inline PyFunctionObject *function(const MdRun *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    return PyFunction_Check(value) ? (PyFunctionObject *)value : NULL;
}

static inline int op_LOAD_CODE(MdRun *run, const MdInstr *ins)
{
    PyFunctionObject *fn = function(run, ins);
    return fn != NULL ? load_borrowed(run, ins, fn->func_code) : 0;
}

static inline int op_LOAD_DEFAULT(MdRun *run, const MdInstr *ins)
{
    PyFunctionObject *fn = function(run, ins);
    PyObject *defaults = fn != NULL ? fn->func_defaults : NULL;
    if (defaults == NULL || ins->index >= PyTuple_GET_SIZE(defaults)) {
        return 0;
    }
    return load_borrowed(run, ins, PyTuple_GET_ITEM(defaults, ins->index));
}

static inline int op_LOAD_KWDEFAULT(MdRun *run, const MdInstr *ins)
{
    PyFunctionObject *fn = function(run, ins);
    PyObject *defaults = fn != NULL ? fn->func_kwdefaults : NULL;
    if (defaults == NULL) {
        return 0;
    }
    return knows(run, defaults) ? load_borrowed(run, ins, PyDict_GetItemWithError(defaults, ins->object)) : MD_UNSURE;
}

static inline int op_LOAD_CELL(MdRun *run, const MdInstr *ins)
{
    PyFunctionObject *fn = function(run, ins);
    return fn != NULL ? load_content(run, ins, fn->func_closure) : 0;
}

/* ---- checks ---- */

static inline int op_CHECK_TYPE_ID(MdRun *run, const MdInstr *ins)
{
    return Py_TYPE(input(run, ins)) == ins->pointer;
}

static inline int op_CHECK_OBJ_ID(MdRun *run, const MdInstr *ins)
{
    return input(run, ins) == ins->pointer;
}

static inline int op_CHECK_CODE_ID(MdRun *run, const MdInstr *ins)
{
    PyFunctionObject *fn = function(run, ins);
    return fn != NULL && fn->func_code == ins->pointer;
}

static inline int op_CHECK_IS_CONST(MdRun *run, const MdInstr *ins)
{
    return input(run, ins) == ins->constants->object;
}

static inline int op_CHECK_IS(MdRun *run, const MdInstr *ins)
{
    return input(run, ins) == run->registers[ins->index];
}

static inline int op_CHECK_IS_NOT(MdRun *run, const MdInstr *ins)
{
    return input(run, ins) != run->registers[ins->index];
}

static inline int op_CHECK_EQUAL(MdRun *run, const MdInstr *ins)
{
    return md_const_same(ins->constants, input(run, ins));
}

static inline int op_CHECK_SAME(MdRun *run, const MdInstr *ins)
{
    return md_const_same(ins->constants, input(run, ins));
}

static inline int op_CHECK_LENGTH(MdRun *run, const MdInstr *ins)
{
    return md_static_len(input(run, ins)) == ins->index;
}

static inline int op_CHECK_STATE(MdRun *run, const MdInstr *ins)
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

static inline int op_CHECK_NO_GLOBAL(MdRun *run, const MdInstr *ins)
{
    PyObject *dict = globals(run);
    return knows(run, dict) ? negated(found(Py_XNewRef(PyDict_GetItemWithError(dict, ins->object)))) : MD_UNSURE;
}

static inline int op_CHECK_ATTR(MdRun *run, const MdInstr *ins)
{
    MdFound at = md_find_attr(input(run, ins), ins->object);
    if (MD_LIKELY(at.where != MD_FOUND_OTHERWISE)) {
        return at.value != NULL;
    }
    return run->pure ? MD_UNSURE : found(md_static_attr(input(run, ins), ins->object));
}

static inline int op_CHECK_NO_ATTR(MdRun *run, const MdInstr *ins)
{
    return negated(op_CHECK_ATTR(run, ins));
}

static inline int op_CHECK_PRESENT(MdRun *run, const MdInstr *ins)
{
    (void)run;
    (void)ins;
    return 1;
}

static inline int op_CHECK_OWN(MdRun *run, const MdInstr *ins)
{
    int answer = md_has_own_pure(input(run, ins), ins->object);
    return answer != MD_UNSURE || run->pure ? answer : md_has_own(input(run, ins), ins->object);
}

static inline int op_CHECK_NO_OWN(MdRun *run, const MdInstr *ins)
{
    return negated(op_CHECK_OWN(run, ins));
}

static inline int op_CHECK_LACKS(MdRun *run, const MdInstr *ins)
{
    int answer = md_lacks_members_pure(input(run, ins), ins->constants, ins->index);
    if (answer != MD_UNSURE || run->pure) {
        return answer;
    }
    return md_lacks_members(input(run, ins), ins->constants, ins->index);
}

static inline int op_CHECK_EMPTY(MdRun *run, const MdInstr *ins)
{
    int answer = md_empty_members_pure(input(run, ins), ins->constants, ins->index);
    if (answer != MD_UNSURE || run->pure) {
        return answer;
    }
    return md_empty_members(input(run, ins), ins->constants, ins->index);
}

/* 1, 0, -1; and 2 for what is no dict. */
static inline int has_key(MdRun *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    if (!PyDict_Check(value)) {
        return 2;
    }
    if (ins->constants->kind == MD_CONST_WEAK && !run->pure) {
        PyObject *object = md_const_get(ins->constants);
        if (object == NULL) {
            return 2; /* the text cannot name the key */
        }
        Py_DECREF(object);
    }
    PyObject *item;
    return dict_item(run, value, ins->constants, &item);
}

static inline int op_CHECK_KEY(MdRun *run, const MdInstr *ins)
{
    int answer = has_key(run, ins);
    return answer == 2 ? 0 : answer;
}

static inline int op_CHECK_NO_KEY(MdRun *run, const MdInstr *ins)
{
    int answer = has_key(run, ins);
    return answer == 2 ? 0 : negated(answer);
}

static inline int op_CHECK_DICT_KEYS(MdRun *run, const MdInstr *ins)
{
    PyObject *value = input(run, ins);
    if (run->pure && PyODict_Check(value)) {
        return MD_UNSURE;
    }
    return PyDict_Check(value) ? md_dict_keys_same(value, ins->constants, ins->index) : 0;
}

/* 1, 0, -1; and 2 when the text cannot name the element. */
static int has_element(MdRun *run, const MdInstr *ins)
{
    if (run->pure) {
        return MD_UNSURE;
    }
    PyObject *set = input(run, ins);
    PyObject *element = md_const_get(ins->constants);
    if (element == NULL) {
        return 2;
    }
    int answer = PyAnySet_CheckExact(set) ? PySet_Contains(set, element) : 0;
    Py_DECREF(element);
    return answer;
}

static inline int op_CHECK_SET_HAS(MdRun *run, const MdInstr *ins)
{
    int answer = has_element(run, ins);
    return answer == 2 ? 0 : answer;
}

static inline int op_CHECK_SET_LACKS(MdRun *run, const MdInstr *ins)
{
    int answer = has_element(run, ins);
    return answer == 2 ? 0 : negated(answer);
}

static inline int op_CHECK_SET_ITEMS(MdRun *run, const MdInstr *ins)
{
    return md_set_items_same(input(run, ins), ins->constants, ins->index);
}

static inline int op_CHECK_SET_ORDER(MdRun *run, const MdInstr *ins)
{
    return md_set_order_same(input(run, ins), ins->constants, ins->index);
}

static inline int op_CHECK_WEAKREF(MdRun *run, const MdInstr *ins)
{
    PyObject *ref = input(run, ins);
    return Py_IS_TYPE(ref, &_PyWeakref_RefType) ? found(md_weakref_target(ref)) : 0;
}

static inline int op_CHECK_ITERATOR(MdRun *run, const MdInstr *ins)
{
    if (run->pure) {
        return MD_UNSURE;
    }
    Py_ssize_t left = md_iterator_len(input(run, ins));
    return left == ins->index ? 1 : PyErr_Occurred() ? -1 : 0;
}

static inline int op_CHECK_TENSOR(MdRun *run, const MdInstr *ins)
{
    return run->self->leaves->check(ins->leaf, &run->tls, input(run, ins));
}

/* Each of the first registers against all others: a table of addresses where there are many. */
static int op_CHECK_DISTINCT(MdRun *run, const MdInstr *ins)
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

int md_guard_call(PyObject *callable, PyObject *const *args, Py_ssize_t count)
{
    MdThread *t = &md_thread;
    t->busy++;
    PyObject *result = PyObject_Vectorcall(callable, args, (size_t)count, NULL);
    t->busy--;
    int truth = result == Py_True ? 1 : result == NULL ? -1 : PyObject_IsTrue(result);
    Py_XDECREF(result);
    return truth;
}

static int op_CHECK_PY(MdRun *run, const MdInstr *ins)
{
    MD_COUNT(guards_python);
    return md_guard_call(ins->object, run->values, run->self->arguments + 2);
}

int md_guard_step(MdRun *run, const MdInstr *ins)
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
