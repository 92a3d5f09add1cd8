/* Making a snapshot: what is known of each register while words in memory are as they are. See guard_run.h. */
#include "snapshot.h"

/* Makes room for one more item; false with no memory. */
static bool grow(void *vector, size_t size)
{
    VECTOR(char) *v = vector;
    if (v->count < v->room) {
        return true;
    }
    Py_ssize_t room = v->room != 0 ? v->room * 2 : 16;
    char *items = PyMem_Realloc(v->items, (size_t)room * size);
    if (items == NULL) {
        return false;
    }
    v->items = items;
    v->room = room;
    return true;
}

#define APPEND(vector, ...) \
    (grow(&(vector), sizeof(*(vector).items)) && ((vector).items[(vector).count++] = __VA_ARGS__, true))

/* What is known of a register. */
typedef enum {
    ANY,     /* it is loaded again each time */
    ADDRESS, /* an object at the same address, alive */
    SAME,    /* the same object as when the snapshot was made */
    LATE,    /* it is loaded again, at the end */
} State;

typedef struct {
    MdGuards *self;
    MdSnapshot *snapshot;
    MdRun run;         /* pure, on the registers of the snapshot */
    State *states;
    int32_t *depths;   /* of registers that are known: the first wave whose words may lie in the object */
    int32_t wave;      /* in which the next word is compared */
    VECTOR(int32_t) waves; /* of each word */
    const void **seen; /* addresses of words, open addressing */
    Py_ssize_t *where; /* and their numbers */
    size_t mask;
    bool knows_globals;
    bool failed; /* no memory, or something has changed since the run: no snapshot */
} Maker;

/* A word at this address is compared, which what is found next depends on. Its number; -1 with no memory. */
static Py_ssize_t depend_on(Maker *m, Py_ssize_t number)
{
    m->wave = Py_MAX(m->wave, m->waves.items[number] + 1);
    return number;
}

/* The number of the word at this address, which is added if it is new; -1 with no memory. */
static Py_ssize_t word(Maker *m, const void *at)
{
    size_t slot = ((uintptr_t)at >> 3) * (size_t)0x9E3779B97F4A7C15u >> 20 & m->mask;
    while (m->seen[slot] != NULL) {
        if (m->seen[slot] == at) {
            return depend_on(m, m->where[slot]);
        }
        slot = (slot + 1) & m->mask;
    }
    const MdBits *bits = at;
    /* the table has room for all: see most_words */
    if (!APPEND(m->waves, m->wave) || !APPEND(m->snapshot->words, (MdWord){bits, *bits})) {
        m->failed = true;
        return -1;
    }
    m->seen[slot] = at;
    return depend_on(m, m->where[slot] = m->snapshot->words.count - 1);
}

/* The dict (at an address that is known) is watched: `key` (NULL: any key, or none that is a str) has value `want` (NULL:
 * none). Says what is then known of the value; ANY: nothing, the dict has to be looked into each time. */
static State depend(Maker *m, PyObject *dict, PyObject *key, PyObject *want)
{
    const uint64_t *version = md_dict_version(dict);
    if (version == NULL) {
        MdWatch *watch = md_dict_watchable(dict) ? md_dict_watch(dict, key, &m->snapshot->stale) : NULL;
        if (watch != NULL && !APPEND(m->snapshot->watches, watch)) {
            md_dict_unwatch(watch);
            m->failed = true;
        }
        return watch != NULL ? SAME : ANY;
    }
    Py_ssize_t number = word(m, version);
    if (!md_is_loose(m->self, dict)) {
        return SAME;
    }
    if (!APPEND(m->snapshot->keys, (MdKeyOf){number, dict, key, want})) {
        m->failed = true;
    }
    return key != NULL ? ADDRESS : SAME;
}

static PyObject *value_of(const Maker *m, int32_t reg)
{
    return m->snapshot->registers[reg];
}

/* Constants may be kept alive: then one at the same address is the same one. */
static bool is_atom(PyObject *value)
{
    return PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value)
           || PyBytes_CheckExact(value) || PyBool_Check(value) || value == Py_None;
}

static void hold(Maker *m, int32_t reg)
{
    if (m->states[reg] == ADDRESS) {
        PyObject *value = Py_NewRef(value_of(m, reg));
        if (!APPEND(m->snapshot->held, value)) {
            Py_DECREF(value);
            m->failed = true;
        }
        m->states[reg] = SAME;
    }
}

/* From here on the type of the object is known. */
static void know_type(Maker *m, int32_t reg)
{
    PyObject *value = value_of(m, reg);
    if (m->states[reg] == ADDRESS && is_atom(value)) {
        hold(m, reg);
    }
    bool fixed = m->states[reg] == SAME && (Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0;
    if (!fixed) {
        (void)word(m, &value->ob_type);
    }
}

static bool know_version(Maker *m, PyTypeObject *type)
{
    const uint64_t *version = md_type_version(type);
    return version != NULL && word(m, version) >= 0;
}

/* Is it a read-only member of an object that nothing can initialise again? (A property, say, can be.) */
static bool is_fixed_member(PyObject *obj, PyObject *name)
{
    PyObject *descriptor = _PyType_Lookup(Py_TYPE(obj), name);
    return (PyFunction_Check(obj) || PyMethod_Check(obj)) && descriptor != NULL
           && Py_IS_TYPE(descriptor, &PyMemberDescr_Type)
           && (((PyMemberDescrObject *)descriptor)->d_member->flags & READONLY) != 0;
}

/* What is known of attribute `name` of a register, `*value` (NULL: there is none). */
static State attribute(Maker *m, int32_t reg, PyObject *name, PyObject **value)
{
    PyObject *obj = value_of(m, reg);
    m->wave = m->depths[reg];
    know_type(m, reg);
    MdFound at = md_find_attr(obj, name); /* gives the type a version, too */
    *value = at.value;
    if (at.where == MD_FOUND_INLINE || at.where == MD_FOUND_OTHERWISE || !know_version(m, Py_TYPE(obj))) {
        return ANY;
    }
    switch (at.where) {
    case MD_FOUND_SLOT:
        if (PyType_Check(obj) && know_version(m, (PyTypeObject *)obj)) {
            (void)word(m, at.place); /* __mro__ and the like follow the version of the type */
            return SAME;
        }
        if (m->states[reg] == SAME && is_fixed_member(obj, name)) {
            return SAME;
        }
        (void)word(m, at.place);
        return ADDRESS;
    case MD_FOUND_PART:
    case MD_FOUND_DICT:
        (void)word(m, at.place);
        return ADDRESS;
    case MD_FOUND_ON_TYPE:
        return know_version(m, (PyTypeObject *)obj) ? SAME : ANY;
    case MD_FOUND_ON_CLASS:
        if (at.dict != NULL) {
            (void)word(m, at.place);
            if (depend(m, at.dict, name, NULL) == ANY) {
                return ANY;
            }
        }
        return SAME;
    default:
        (void)word(m, at.place);
        return depend(m, at.dict, name, at.value);
    }
}

/* What is known of an item of a dict. */
static State item(Maker *m, int32_t reg, const MdConst *key)
{
    know_type(m, reg);
    bool named = key->kind == MD_CONST_LITERAL && PyUnicode_CheckExact(key->object);
    PyObject *dict = value_of(m, reg);
    PyObject *value =
        named && md_dict_has_str_keys(dict) ? _PyDict_GetItem_KnownHash(dict, key->object, key->hash) : NULL;
    return depend(m, dict, value != NULL ? key->object : NULL, value);
}

static bool root(Maker *m, int32_t instruction, PyObject *value)
{
    if (instruction < 0 && m->knows_globals) {
        return true;
    }
    m->knows_globals = m->knows_globals || instruction < 0;
    if (!APPEND(m->snapshot->roots, (MdRoot){instruction, value})) {
        m->failed = true;
    }
    return true;
}

static PyObject *globals(const Maker *m)
{
    return m->run.values[m->self->arguments];
}

/* An argument, or the content of a cell, that is an object with a life of its own. */
static bool is_lasting(const MdInstr *ins, PyObject *value)
{
    PyObject **slot, *dict;
    return ins->stepped && ins->changes < MD_CHANGES && !PyTuple_Check(value) && !PyDict_Check(value)
           && !PyList_Check(value)
           && (PyType_Check(value) || PyFunction_Check(value) || md_instance_dict(value, &slot, &dict) == MD_DICT_REAL);
}

/* The item of a tuple to which `place` points is the one that it was: another tuple may lie there. */
static bool tuple_item(Maker *m, PyObject **place, Py_ssize_t index)
{
    PyObject *tuple = *place;
    return word(m, place) >= 0 && word(m, &((PyVarObject *)tuple)->ob_size) >= 0
           && word(m, &PyTuple_GET_ITEM(tuple, index)) >= 0;
}

/* What is known of the register of a load, whose value is in its register already. */
static State classify_load(Maker *m, const MdInstr *ins, int32_t number)
{
    PyObject *value = value_of(m, ins->out), *found;
    State in = ins->in >= 0 ? m->states[ins->in] : ANY;
    PyObject *input = ins->in >= 0 ? value_of(m, ins->in) : NULL;
    switch (ins->op) {
    case MD_OP_LOAD_LOCAL:
    case MD_OP_LOAD_CLOSURE:
        return is_lasting(ins, value) && root(m, number, value) ? ADDRESS : ANY;
    case MD_OP_LOAD_GLOBALS:
    case MD_OP_LOAD_MODULES:
        return root(m, number, value) ? ADDRESS : ANY;
    case MD_OP_LOAD_GLOBAL:
        return root(m, -1, globals(m)) ? depend(m, globals(m), ins->object, value) : ANY;
    case MD_OP_LOAD_BUILTIN:
        return depend(m, m->self->builtins, ins->object, value);
    default:
        break;
    }
    if (in != ADDRESS && in != SAME) {
        return ANY;
    }
    State state = ANY;
    switch (ins->op) {
    case MD_OP_LOAD_ATTR:
    case MD_OP_LOAD_MEMBER:
        state = attribute(m, ins->in, ins->object, &found);
        m->failed |= state != ANY && found != value;
        break;
    case MD_OP_LOAD_ITEM:
    case MD_OP_LOAD_DICT_ITEM:
        if (PyDict_Check(input)) {
            state = item(m, ins->in, ins->constants);
        }
        else if (PyTuple_Check(input) && in == SAME) {
            state = SAME;
        }
        break;
    case MD_OP_LOAD_DICT_KEY:
        know_type(m, ins->in);
        state = depend(m, input, NULL, NULL);
        break;
    case MD_OP_LOAD_TYPE:
        know_type(m, ins->in);
        state = know_version(m, Py_TYPE(input)) ? SAME : ADDRESS;
        break;
    case MD_OP_LOAD_CODE:
        know_type(m, ins->in);
        (void)word(m, &((PyFunctionObject *)input)->func_code);
        state = ADDRESS;
        break;
    case MD_OP_LOAD_DEFAULT:
        know_type(m, ins->in);
        (void)tuple_item(m, &((PyFunctionObject *)input)->func_defaults, ins->index);
        state = ADDRESS;
        break;
    case MD_OP_LOAD_CELL: {
        PyObject **closure = &((PyFunctionObject *)input)->func_closure;
        PyObject *cell = PyTuple_GET_ITEM(*closure, ins->index);
        if (in != SAME) { /* else the function keeps its cells */
            know_type(m, ins->in);
            (void)tuple_item(m, closure, ins->index);
        }
        (void)word(m, &((PyCellObject *)cell)->ob_ref);
        state = ADDRESS;
        break;
    }
    default:
        break;
    }
    return state;
}

static bool is_known(const Maker *m, Py_ssize_t reg)
{
    return m->states[reg] == ADDRESS || m->states[reg] == SAME;
}

/* An object whose own dictionary lacks names. */
static bool lacks_members(Maker *m, const MdInstr *ins)
{
    PyObject *obj = value_of(m, ins->in), **place;
    know_type(m, ins->in);
    PyObject *dict = md_own_dict(obj, &place); /* gives the type a version, too */
    if (dict == NULL || !know_version(m, Py_TYPE(obj))) {
        return false;
    }
    (void)word(m, place);
    for (Py_ssize_t i = 0; i < ins->index; i++) {
        if (depend(m, dict, ins->constants[i].object, NULL) == ANY) {
            return false;
        }
    }
    return true;
}

/* Whether an object's own dictionary has a name. */
static bool has_own(Maker *m, const MdInstr *ins)
{
    PyObject *obj = value_of(m, ins->in), **place = NULL, *dict = NULL;
    know_type(m, ins->in);
    int there = md_has_own_pure(obj, ins->object); /* gives the type a version, too */
    if (there == MD_UNSURE || !know_version(m, Py_TYPE(obj))) {
        return false;
    }
    MdDictState state = md_instance_dict(obj, &place, &dict);
    if (state == MD_DICT_REAL) {
        (void)word(m, place);
        PyObject *value =
            there ? _PyDict_GetItem_KnownHash(dict, ins->object, ((PyASCIIObject *)ins->object)->hash) : NULL;
        return depend(m, dict, ins->object, value) != ANY;
    }
    if (there || (Py_TYPE(obj)->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0) {
        return false; /* attributes lie in the object */
    }
    (void)word(m, place); /* a dict is made at the first store */
    return true;
}

/* Attributes that are empty OrderedDicts; an object of that type keeps its type. */
static bool empty_members(Maker *m, const MdInstr *ins)
{
    for (Py_ssize_t i = 0; i < ins->index; i++) {
        PyObject *found;
        State state = attribute(m, ins->in, ins->constants[i].object, &found);
        if (state == ANY || found == NULL) {
            return false;
        }
        if (state != SAME) {
            (void)word(m, &found->ob_type);
        }
        (void)word(m, &((PyDictObject *)found)->ma_used);
    }
    return true;
}

/* Need a check (that holds now) not be run again? */
static bool classify_check(Maker *m, const MdInstr *ins)
{
    PyObject *value = ins->in >= 0 ? value_of(m, ins->in) : NULL, *found;
    if (ins->op == MD_OP_CHECK_NO_GLOBAL) {
        return root(m, -1, globals(m)) && depend(m, globals(m), ins->object, NULL) != ANY;
    }
    if (ins->op == MD_OP_CHECK_DISTINCT) {
        bool known = true;
        for (Py_ssize_t i = 0; i < ins->index; i++) {
            known = known && is_known(m, ins->registers[i]);
        }
        return known;
    }
    if (ins->in < 0 || !is_known(m, ins->in)) {
        return false;
    }
    switch (ins->op) {
    case MD_OP_CHECK_TYPE_ID:
        know_type(m, ins->in);
        return true;
    case MD_OP_CHECK_OBJ_ID:
    case MD_OP_CHECK_IS_CONST:
    case MD_OP_CHECK_PRESENT:
        return true;
    case MD_OP_CHECK_CODE_ID:
        know_type(m, ins->in);
        (void)word(m, &((PyFunctionObject *)value)->func_code);
        return true;
    case MD_OP_CHECK_IS:
    case MD_OP_CHECK_IS_NOT:
        return is_known(m, ins->index);
    case MD_OP_CHECK_EQUAL:
    case MD_OP_CHECK_SAME:
        if (ins->constants->kind == MD_CONST_LITERAL || ins->constants->kind == MD_CONST_EQUAL) {
            hold(m, ins->in); /* equal to a constant, so it is one */
        }
        return true;
    case MD_OP_CHECK_LENGTH:
        if (PyDict_Check(value)) {
            know_type(m, ins->in);
            (void)word(m, &((PyDictObject *)value)->ma_used);
            return true;
        }
        if (m->states[ins->in] == ADDRESS && PyTuple_Check(value)) {
            know_type(m, ins->in);
            (void)word(m, &((PyVarObject *)value)->ob_size);
            return true;
        }
        return m->states[ins->in] == SAME && (PyTuple_Check(value) || PyUnicode_Check(value) || PyBytes_Check(value));
    case MD_OP_CHECK_ATTR:
    case MD_OP_CHECK_NO_ATTR: {
        State state = attribute(m, ins->in, ins->object, &found);
        return state != ANY;
    }
    case MD_OP_CHECK_OWN:
    case MD_OP_CHECK_NO_OWN:
        return has_own(m, ins);
    case MD_OP_CHECK_LACKS:
        return lacks_members(m, ins);
    case MD_OP_CHECK_EMPTY:
        return empty_members(m, ins);
    case MD_OP_CHECK_KEY:
    case MD_OP_CHECK_NO_KEY: {
        const MdConst *key = ins->constants;
        know_type(m, ins->in);
        if (key->kind != MD_CONST_LITERAL || !PyUnicode_CheckExact(key->object) || !md_dict_has_str_keys(value)) {
            return key->kind != MD_CONST_WEAK && depend(m, value, NULL, NULL) != ANY;
        }
        return depend(m, value, key->object, _PyDict_GetItem_KnownHash(value, key->object, key->hash)) != ANY;
    }
    case MD_OP_CHECK_DICT_KEYS:
        know_type(m, ins->in);
        return !PyODict_Check(value) && depend(m, value, NULL, NULL) != ANY;
    default:
        return false;
    }
}

/* Does the instruction read a register that is loaded at the end? */
static bool reads_late(const Maker *m, const MdInstr *ins)
{
    if (ins->op == MD_OP_CHECK_DISTINCT) {
        for (Py_ssize_t i = 0; i < ins->index; i++) {
            if (m->states[ins->registers[i]] == LATE) {
                return true;
            }
        }
        return false;
    }
    bool pair = ins->op == MD_OP_CHECK_IS || ins->op == MD_OP_CHECK_IS_NOT;
    return (ins->in >= 0 && m->states[ins->in] == LATE) || (pair && m->states[ins->index] == LATE);
}

static void borrow(Maker *m, Py_ssize_t reg)
{
    if (m->states[reg] != LATE && !APPEND(m->snapshot->borrowed, (int32_t)reg)) {
        m->failed = true;
    }
}

/* The instruction is run at the end, with the registers that it reads. */
static void postpone(Maker *m, const MdInstr *ins, int32_t number)
{
    m->failed |= !APPEND(m->snapshot->late, number);
    m->snapshot->late_registers |= ins->op != MD_OP_CHECK_PY;
    if (ins->in >= 0) {
        borrow(m, ins->in);
    }
    if (ins->op == MD_OP_CHECK_IS || ins->op == MD_OP_CHECK_IS_NOT) {
        borrow(m, ins->index);
    }
    for (Py_ssize_t i = 0; ins->op == MD_OP_CHECK_DISTINCT && i < ins->index; i++) {
        borrow(m, ins->registers[i]);
    }
    if (ins->out >= 0) {
        m->states[ins->out] = LATE;
    }
}

static void record(Maker *m, const MdInstr *ins, int32_t number)
{
    int outcome = ins->op == MD_OP_CHECK_PY || reads_late(m, ins) ? MD_UNSURE : md_guard_step(&m->run, ins);
    if (outcome == MD_UNSURE) {
        postpone(m, ins, number);
        return;
    }
    if (outcome <= 0) {
        PyErr_Clear();
        m->failed = true; /* it has changed since the run */
        return;
    }
    m->wave = ins->in >= 0 ? m->depths[ins->in] : 0;
    if (ins->out >= 0) {
        m->states[ins->out] = classify_load(m, ins, number);
        m->depths[ins->out] = m->wave;
        if (m->states[ins->out] == ANY) {
            m->failed |= !APPEND(m->snapshot->rest, number);
        }
    }
    else if (ins->op == MD_OP_CHECK_TENSOR && is_known(m, ins->in)) {
        TensorCheck check = {value_of(m, ins->in), ins->leaf, NULL};
        m->self->leaves->foresee(&check);
        m->failed |= !APPEND(m->snapshot->tensors, check);
    }
    else if (!classify_check(m, ins)) {
        m->failed |= !APPEND(m->snapshot->rest, number);
    }
}

/* No program adds more words: six of each instruction, and of each name of those that have several. */
static size_t most_words(const MdGuards *self)
{
    size_t words = 0;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        const MdInstr *ins = &self->code[i];
        bool several = ins->op == MD_OP_CHECK_LACKS || ins->op == MD_OP_CHECK_EMPTY;
        words += 6 + (several ? (size_t)ins->index * 6 : 0);
    }
    return words;
}

/* Sorts the words by waves, those of a wave as they were found; `waves` becomes where each ends. */
static bool sort_words(Maker *m)
{
    MdSnapshot *s = m->snapshot;
    for (Py_ssize_t i = 0; i < s->words.count; i++) {
        while (s->waves.count <= m->waves.items[i]) {
            if (!APPEND(s->waves, 0)) {
                return false;
            }
        }
        s->waves.items[m->waves.items[i]]++; /* how many there are */
    }
    for (Py_ssize_t wave = 0, begin = 0; wave < s->waves.count; wave++) {
        Py_ssize_t count = s->waves.items[wave];
        s->waves.items[wave] = begin; /* where the next one goes */
        begin += count;
    }
    MdWord *sorted = PyMem_New(MdWord, s->words.count + 1);
    Py_ssize_t *moved = PyMem_New(Py_ssize_t, s->words.count + 1);
    bool made = sorted != NULL && moved != NULL;
    for (Py_ssize_t i = 0; made && i < s->words.count; i++) {
        moved[i] = s->waves.items[m->waves.items[i]]++;
        sorted[moved[i]] = s->words.items[i];
    }
    for (Py_ssize_t i = 0; made && i < s->keys.count; i++) {
        s->keys.items[i].word = moved[s->keys.items[i].word];
    }
    PyMem_Free(moved);
    if (!made) {
        PyMem_Free(sorted);
        return false;
    }
    PyMem_Free(s->words.items);
    s->words.items = sorted;
    s->words.room = s->words.count + 1;
    return true;
}

MdSnapshot *md_snapshot_new(MdGuards *self, PyObject *const *values, const TensorTls *tls)
{
    size_t room = 64;
    while (room < most_words(self) * 2) {
        room *= 2;
    }
    MdSnapshot *snapshot = PyMem_Calloc(1, sizeof(MdSnapshot));
    Maker m = {
        .self = self,
        .snapshot = snapshot,
        .states = PyMem_Calloc((size_t)self->registers + 1, sizeof(State)),
        .depths = PyMem_Calloc((size_t)self->registers + 1, sizeof(int32_t)),
        .seen = PyMem_Calloc(room, sizeof(void *)),
        .where = PyMem_Calloc(room, sizeof(Py_ssize_t)),
        .mask = room - 1,
    };
    if (snapshot != NULL) {
        snapshot->registers = PyMem_Calloc((size_t)self->registers + 1, sizeof(PyObject *));
    }
    bool made = snapshot != NULL && snapshot->registers != NULL && m.states != NULL && m.depths != NULL
                && m.seen != NULL && m.where != NULL;
    if (made) {
        m.run = (MdRun){.self = self, .values = values, .registers = snapshot->registers, .pure = true, .tls = *tls};
        for (Py_ssize_t i = 0; i < self->count && !m.failed; i++) {
            record(&m, &self->code[i], (int32_t)i);
        }
        for (Py_ssize_t i = 0; i < self->input_count && !m.failed; i++) {
            m.failed = m.states[self->inputs[i]] == LATE; /* handed over before anything is run late */
        }
        made = !m.failed && sort_words(&m);
    }
    PyMem_Free(m.states);
    PyMem_Free(m.depths);
    PyMem_Free(m.waves.items);
    PyMem_Free(m.seen);
    PyMem_Free(m.where);
    if (!made && snapshot != NULL) {
        md_snapshot_free(snapshot);
        snapshot = NULL;
    }
    return snapshot;
}
