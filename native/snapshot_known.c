/* What is known of each register while words in memory are as they are, and which checks hold by that. See guard_run.h. */
#include "snapshot_maker.h"

static PyObject *globals(const MdMaker *m)
{
    return m->run.values[m->self->arguments];
}

/* The dict is not watched: words say so that its key is as it was. */
static MdKnown depend_on_words(MdMaker *m, PyObject *dict, PyObject *key)
{
    MdKeyWords words;
    if (key == NULL || !md_dict_key_words(dict, key, &words) || md_maker_word(m, words.values) < 0) {
        return MD_ANY;
    }
    PyObject *value = words.value != NULL ? *words.value : NULL;
    (void)md_maker_word(m, words.value != NULL ? (const void *)words.value : words.keys);
    return value != NULL ? MD_ADDRESS : MD_SAME;
}

/* The dict (at an address that is known) is watched: `key` (NULL: any key, or none that is a str) has value `want` (NULL:
 * none). Says what is then known of the value; ANY: nothing, the dict has to be looked into each time. */
static MdKnown depend(MdMaker *m, PyObject *dict, PyObject *key, PyObject *want)
{
    const uint64_t *version = md_dict_version(dict);
    if (version == NULL) {
        if (!md_dict_watchable(dict)) {
            return depend_on_words(m, dict, key);
        }
        MdWatch *watch = md_dict_watch(dict, key, &m->snapshot->stale);
        if (watch != NULL && !APPEND(m->snapshot->watches, watch)) {
            md_dict_unwatch(watch);
            m->failed = true;
        }
        return watch != NULL ? MD_SAME : MD_ANY;
    }
    Py_ssize_t number = md_maker_dict_word(m, version);
    if (!md_is_loose(m->self, dict)) {
        return MD_SAME;
    }
    if (!APPEND(m->snapshot->keys, (MdKeyOf){number, dict, key, want})) {
        m->failed = true;
    }
    return key != NULL ? MD_ADDRESS : MD_SAME;
}

/* How many keys a dict (at an address that is known, alive) has. None of them can go from one that has none. */
static void know_used(MdMaker *m, PyObject *dict)
{
    if (((PyDictObject *)dict)->ma_used != 0 || md_dict_version(dict) != NULL
        || depend(m, dict, NULL, NULL) == MD_ANY) {
        (void)md_maker_dict_word(m, &((PyDictObject *)dict)->ma_used);
    }
}

/* Constants may be kept alive: then one at the same address is the same one. */
static bool is_atom(PyObject *value)
{
    return PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value)
           || PyBytes_CheckExact(value) || PyBool_Check(value) || value == Py_None;
}

static void hold(MdMaker *m, int32_t reg)
{
    if (m->states[reg] == MD_ADDRESS) {
        PyObject *value = Py_NewRef(md_maker_value(m, reg));
        if (!APPEND(m->snapshot->held, value)) {
            Py_DECREF(value);
            m->failed = true;
        }
        m->states[reg] = MD_SAME;
    }
}

/* From here on the type of the object is known. */
static void know_type(MdMaker *m, int32_t reg)
{
    PyObject *value = md_maker_value(m, reg);
    if (m->states[reg] == MD_ADDRESS && is_atom(value)) {
        hold(m, reg);
    }
    bool fixed = m->states[reg] == MD_SAME && (Py_TYPE(value)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0;
    if (!fixed) {
        (void)md_maker_word(m, &value->ob_type);
    }
}

static bool know_version(MdMaker *m, PyTypeObject *type)
{
    const uint64_t *version = md_type_version(type);
    return version != NULL && md_maker_word(m, version) >= 0;
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
static MdKnown attribute(MdMaker *m, int32_t reg, PyObject *name, PyObject **value)
{
    PyObject *obj = md_maker_value(m, reg);
    know_type(m, reg);
    MdFound at = md_find_attr(obj, name); /* gives the type a version, too */
    *value = at.value;
    if (at.where == MD_FOUND_INLINE || at.where == MD_FOUND_OTHERWISE || !know_version(m, Py_TYPE(obj))) {
        return MD_ANY;
    }
    switch (at.where) {
    case MD_FOUND_SLOT:
        if (PyType_Check(obj) && know_version(m, (PyTypeObject *)obj)) {
            (void)md_maker_word(m, at.place); /* __mro__ and the like follow the version of the type */
            return MD_SAME;
        }
        if (m->states[reg] == MD_SAME && is_fixed_member(obj, name)) {
            return MD_SAME;
        }
        (void)md_maker_word(m, at.place);
        return MD_ADDRESS;
    case MD_FOUND_PART:
    case MD_FOUND_DICT:
        (void)md_maker_word(m, at.place);
        return MD_ADDRESS;
    case MD_FOUND_ON_TYPE:
        return know_version(m, (PyTypeObject *)obj) ? MD_SAME : MD_ANY;
    case MD_FOUND_ON_CLASS:
        if (at.dict != NULL) {
            (void)md_maker_word(m, at.place);
            if (depend(m, at.dict, name, NULL) == MD_ANY) {
                return MD_ANY;
            }
        }
        return MD_SAME;
    default:
        (void)md_maker_word(m, at.place);
        return depend(m, at.dict, name, at.value);
    }
}

/* What is known of an item of a dict. */
static MdKnown item(MdMaker *m, int32_t reg, const MdConst *key)
{
    know_type(m, reg);
    bool named = key->kind == MD_CONST_LITERAL && PyUnicode_CheckExact(key->object);
    PyObject *dict = md_maker_value(m, reg);
    PyObject *value =
        named && md_dict_has_str_keys(dict) ? _PyDict_GetItem_KnownHash(dict, key->object, key->hash) : NULL;
    return depend(m, dict, value != NULL ? key->object : NULL, value);
}

static bool root(MdMaker *m, int32_t instruction, PyObject *value)
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

/* An argument, or the content of a cell, that is an object with a life of its own. */
static bool is_lasting(const MdMaker *m, const MdInstr *ins, PyObject *value)
{
    PyObject **slot, *dict;
    return ins->stepped && ins->useless < MD_USELESS && !(m->snapshot->common && ins->varies) && !PyTuple_Check(value)
           && !PyDict_Check(value) && !PyList_Check(value)
           && (PyType_Check(value) || PyFunction_Check(value) || md_instance_dict(value, &slot, &dict) == MD_DICT_REAL);
}

/* The item of a tuple to which `place` points is the one that it was: another tuple may lie there. */
static bool tuple_item(MdMaker *m, PyObject **place, Py_ssize_t index)
{
    PyObject *tuple = *place;
    return md_maker_word(m, place) >= 0 && md_maker_word(m, &((PyVarObject *)tuple)->ob_size) >= 0
           && md_maker_word(m, &PyTuple_GET_ITEM(tuple, index)) >= 0;
}

MdKnown md_known_of_load(MdMaker *m, const MdInstr *ins, int32_t number)
{
    PyObject *value = md_maker_value(m, ins->out), *found;
    MdKnown in = ins->in >= 0 ? m->states[ins->in] : MD_ANY;
    PyObject *input = ins->in >= 0 ? md_maker_value(m, ins->in) : NULL;
    switch (ins->op) {
    case MD_OP_LOAD_LOCAL:
    case MD_OP_LOAD_CLOSURE:
        return is_lasting(m, ins, value) && root(m, number, value) ? MD_ADDRESS : MD_ANY;
    case MD_OP_LOAD_GLOBALS:
    case MD_OP_LOAD_MODULES:
        return root(m, number, value) ? MD_ADDRESS : MD_ANY;
    case MD_OP_LOAD_GLOBAL:
        return root(m, -1, globals(m)) ? depend(m, globals(m), ins->object, value) : MD_ANY;
    case MD_OP_LOAD_BUILTIN:
        return depend(m, m->self->builtins, ins->object, value);
    default:
        break;
    }
    if (in != MD_ADDRESS && in != MD_SAME) {
        return MD_ANY;
    }
    MdKnown state = MD_ANY;
    switch (ins->op) {
    case MD_OP_LOAD_ATTR:
    case MD_OP_LOAD_MEMBER:
        state = attribute(m, ins->in, ins->object, &found);
        m->failed |= state != MD_ANY && found != value;
        break;
    case MD_OP_LOAD_ITEM:
    case MD_OP_LOAD_DICT_ITEM:
        if (PyDict_Check(input)) {
            state = item(m, ins->in, ins->constants);
        }
        else if (PyTuple_Check(input) && in == MD_SAME) {
            state = MD_SAME;
        }
        break;
    case MD_OP_LOAD_DICT_KEY:
        know_type(m, ins->in);
        state = depend(m, input, NULL, NULL);
        break;
    case MD_OP_LOAD_TYPE:
        know_type(m, ins->in);
        state = know_version(m, Py_TYPE(input)) ? MD_SAME : MD_ADDRESS;
        break;
    case MD_OP_LOAD_CODE:
        know_type(m, ins->in);
        (void)md_maker_word(m, &((PyFunctionObject *)input)->func_code);
        state = MD_ADDRESS;
        break;
    case MD_OP_LOAD_DEFAULT:
        know_type(m, ins->in);
        (void)tuple_item(m, &((PyFunctionObject *)input)->func_defaults, ins->index);
        state = MD_ADDRESS;
        break;
    case MD_OP_LOAD_CELL: {
        PyObject **closure = &((PyFunctionObject *)input)->func_closure;
        PyObject *cell = PyTuple_GET_ITEM(*closure, ins->index);
        if (in != MD_SAME) { /* else the function keeps its cells */
            know_type(m, ins->in);
            (void)tuple_item(m, closure, ins->index);
        }
        (void)md_maker_word(m, &((PyCellObject *)cell)->ob_ref);
        state = MD_ADDRESS;
        break;
    }
    default:
        break;
    }
    return state;
}

/* An object whose own dictionary lacks names. */
static bool lacks_members(MdMaker *m, const MdInstr *ins)
{
    PyObject *obj = md_maker_value(m, ins->in), **place;
    know_type(m, ins->in);
    PyObject *dict = md_own_dict(obj, &place); /* gives the type a version, too */
    if (dict == NULL || !know_version(m, Py_TYPE(obj))) {
        return false;
    }
    (void)md_maker_word(m, place);
    for (Py_ssize_t i = 0; i < ins->index; i++) {
        if (depend(m, dict, ins->constants[i].object, NULL) == MD_ANY) {
            return false;
        }
    }
    return true;
}

/* Whether an object's own dictionary has a name. */
static bool has_own(MdMaker *m, const MdInstr *ins)
{
    PyObject *obj = md_maker_value(m, ins->in), **place = NULL, *dict = NULL;
    know_type(m, ins->in);
    int there = md_has_own_pure(obj, ins->object); /* gives the type a version, too */
    if (there == MD_UNSURE || !know_version(m, Py_TYPE(obj))) {
        return false;
    }
    MdDictState state = md_instance_dict(obj, &place, &dict);
    if (state == MD_DICT_REAL) {
        (void)md_maker_word(m, place);
        PyObject *value =
            there ? _PyDict_GetItem_KnownHash(dict, ins->object, ((PyASCIIObject *)ins->object)->hash) : NULL;
        return depend(m, dict, ins->object, value) != MD_ANY;
    }
    if (there || (Py_TYPE(obj)->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0) {
        return false; /* attributes lie in the object */
    }
    (void)md_maker_word(m, place); /* a dict is made at the first store */
    return true;
}

/* Attributes that are empty OrderedDicts; an object of that type keeps its type. */
static bool empty_members(MdMaker *m, const MdInstr *ins)
{
    for (Py_ssize_t i = 0; i < ins->index; i++) {
        PyObject *found;
        MdKnown state = attribute(m, ins->in, ins->constants[i].object, &found);
        if (state == MD_ANY || found == NULL) {
            return false;
        }
        if (state != MD_SAME) {
            (void)md_maker_word(m, &found->ob_type);
        }
        know_used(m, found);
    }
    return true;
}

bool md_known_check(MdMaker *m, const MdInstr *ins)
{
    PyObject *value = ins->in >= 0 ? md_maker_value(m, ins->in) : NULL, *found;
    if (ins->op == MD_OP_CHECK_NO_GLOBAL) {
        return root(m, -1, globals(m)) && depend(m, globals(m), ins->object, NULL) != MD_ANY;
    }
    if (ins->op == MD_OP_CHECK_DISTINCT) {
        bool known = true;
        for (Py_ssize_t i = 0; i < ins->index; i++) {
            known = known && md_maker_knows(m, ins->registers[i]);
        }
        return known;
    }
    if (ins->in < 0 || !md_maker_knows(m, ins->in)) {
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
        (void)md_maker_word(m, &((PyFunctionObject *)value)->func_code);
        return true;
    case MD_OP_CHECK_IS:
    case MD_OP_CHECK_IS_NOT:
        return md_maker_knows(m, ins->index);
    case MD_OP_CHECK_EQUAL:
    case MD_OP_CHECK_SAME:
        if (ins->constants->kind == MD_CONST_LITERAL || ins->constants->kind == MD_CONST_EQUAL) {
            hold(m, ins->in); /* equal to a constant, so it is one */
        }
        return true;
    case MD_OP_CHECK_LENGTH:
        if (PyDict_Check(value)) {
            know_type(m, ins->in);
            know_used(m, value);
            return true;
        }
        if (m->states[ins->in] == MD_ADDRESS && PyTuple_Check(value)) {
            know_type(m, ins->in);
            (void)md_maker_word(m, &((PyVarObject *)value)->ob_size);
            return true;
        }
        return m->states[ins->in] == MD_SAME
               && (PyTuple_Check(value) || PyUnicode_Check(value) || PyBytes_Check(value));
    case MD_OP_CHECK_ATTR:
    case MD_OP_CHECK_NO_ATTR: {
        MdKnown state = attribute(m, ins->in, ins->object, &found);
        return state != MD_ANY;
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
            return key->kind != MD_CONST_WEAK && depend(m, value, NULL, NULL) != MD_ANY;
        }
        return depend(m, value, key->object, _PyDict_GetItem_KnownHash(value, key->object, key->hash)) != MD_ANY;
    }
    case MD_OP_CHECK_DICT_KEYS:
        know_type(m, ins->in);
        return !PyODict_Check(value) && depend(m, value, NULL, NULL) != MD_ANY;
    default:
        return false;
    }
}
