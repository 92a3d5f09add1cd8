/* What guard instructions mean on plain objects: the C side of static_access.py, literals.same and py_leaves.py. */
#include "guard_run.h"

static PyTypeObject *deque_type, *iterator_types[4];
static PyObject *dict_string, *torch_function_string;

/* ---- constants ---- */

PyObject *md_const_get(const MdConst *constant)
{
    return constant->kind == MD_CONST_WEAK ? md_weakref_target(constant->object) : Py_NewRef(constant->object);
}

static bool same_double(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

/* == of two objects of one exact builtin type, whose comparison runs C code only. */
static bool plain_equal(PyObject *a, PyObject *b)
{
    int equal = PyObject_RichCompareBool(a, b, Py_EQ);
    if (equal < 0) {
        PyErr_Clear(); /* no memory */
    }
    return equal > 0;
}

static bool same_literal(PyObject *value, PyObject *expected)
{
    if (value == expected) {
        return true;
    }
    PyTypeObject *type = Py_TYPE(expected);
    if (Py_TYPE(value) != type) {
        return false;
    }
    if (type == &PyUnicode_Type || type == &PyLong_Type || type == &PyBytes_Type) {
        return plain_equal(value, expected);
    }
    if (type == &PyFloat_Type) {
        return same_double(PyFloat_AS_DOUBLE(value), PyFloat_AS_DOUBLE(expected));
    }
    if (type == &PyComplex_Type) {
        Py_complex a = ((PyComplexObject *)value)->cval, b = ((PyComplexObject *)expected)->cval;
        return same_double(a.real, b.real) && same_double(a.imag, b.imag);
    }
    if (!PyTuple_Check(expected) || PyTuple_GET_SIZE(value) != PyTuple_GET_SIZE(expected)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(expected); i++) {
        if (!same_literal(PyTuple_GET_ITEM(value, i), PyTuple_GET_ITEM(expected, i))) {
            return false;
        }
    }
    return true;
}

bool md_const_same(const MdConst *constant, PyObject *value)
{
    switch (constant->kind) {
    case MD_CONST_LITERAL:
        return same_literal(value, constant->object);
    case MD_CONST_EQUAL:
        return value == constant->object
               || (Py_TYPE(value) == Py_TYPE(constant->object) && plain_equal(value, constant->object));
    case MD_CONST_WEAK: {
        PyObject *target = md_weakref_target(constant->object);
        Py_XDECREF(target); /* not the last reference if it is `value`, which the caller holds */
        return target == value;
    }
    default:
        return value == constant->object;
    }
}

/* ---- attributes ---- */

static bool is_slot(PyObject *descriptor)
{
    return Py_IS_TYPE(descriptor, &PyMemberDescr_Type) || Py_IS_TYPE(descriptor, &PyGetSetDescr_Type);
}

/* Turns "there is no such attribute" into no exception. */
static PyObject *or_absent(PyObject *value)
{
    if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
    }
    return value;
}

static PyObject *read_slot(PyObject *descriptor, PyObject *obj)
{
    PyTypeObject *type = Py_TYPE(obj);
    if (Py_IS_TYPE(descriptor, &PyGetSetDescr_Type) && PyDescr_NAME(descriptor) != dict_string) {
        PyObject *hook = _PyType_Lookup(type, torch_function_string);
        if (hook != NULL && hook != Py_None) {
            return NULL; /* a getter that dispatches to __torch_function__ is no static attribute */
        }
    }
    return or_absent(Py_TYPE(descriptor)->tp_descr_get(descriptor, obj, (PyObject *)type));
}

static MdFound found_member(PyObject *descriptor, PyObject *obj)
{
    PyMemberDef *member = ((PyMemberDescrObject *)descriptor)->d_member;
    PyObject **place = (PyObject **)((char *)obj + member->offset);
    if (member->type != T_OBJECT_EX && (member->type != T_OBJECT || *place == NULL)) {
        return (MdFound){.where = MD_FOUND_OTHERWISE};
    }
    return (MdFound){.where = MD_FOUND_SLOT, .value = *place, .place = place};
}

static MdFound found_own_dict(PyObject *obj)
{
    MdFound at = {.where = MD_FOUND_DICT};
    if (md_instance_dict(obj, &at.place, &at.dict) != MD_DICT_REAL) {
        return (MdFound){.where = MD_FOUND_OTHERWISE};
    }
    at.value = at.dict;
    return at;
}

/* What getters of functions and classes read. */
static const struct {
    const char *name;
    PyTypeObject *of;
    size_t offset;
} getters[] = {
    {"__name__", &PyFunction_Type, offsetof(PyFunctionObject, func_name)},
    {"__qualname__", &PyFunction_Type, offsetof(PyFunctionObject, func_qualname)},
    {"__defaults__", &PyFunction_Type, offsetof(PyFunctionObject, func_defaults)},
    {"__code__", &PyFunction_Type, offsetof(PyFunctionObject, func_code)},
    {"__name__", &PyType_Type, offsetof(PyHeapTypeObject, ht_name)},
    {"__qualname__", &PyType_Type, offsetof(PyHeapTypeObject, ht_qualname)},
};

static MdFound found_getter(PyObject *descriptor, PyObject *obj)
{
    PyTypeObject *of = PyDescr_TYPE(descriptor);
    bool is_class = PyType_Check(obj);
    if (is_class ? of != &PyType_Type || (((PyTypeObject *)obj)->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0
                 : of != &PyFunction_Type || !PyFunction_Check(obj)) {
        return (MdFound){.where = MD_FOUND_OTHERWISE};
    }
    if (is_class && !Py_IS_TYPE(obj, &PyType_Type) && _PyType_Lookup(Py_TYPE(obj), torch_function_string) != NULL) {
        return (MdFound){.where = MD_FOUND_OTHERWISE}; /* see read_slot */
    }
    PyObject *name = PyDescr_NAME(descriptor);
    if (is_class && PyUnicode_CompareWithASCIIString(name, "__mro__") == 0) { /* a member in 3.11 */
        PyObject **place = &((PyTypeObject *)obj)->tp_mro;
        return (MdFound){.where = *place != NULL ? MD_FOUND_SLOT : MD_FOUND_OTHERWISE, .value = *place, .place = place};
    }
    if (is_class && PyUnicode_CompareWithASCIIString(name, "__module__") == 0) {
        PyObject *dict = ((PyTypeObject *)obj)->tp_dict; /* whose changes give the class another version */
        PyObject *value = dict != NULL ? _PyDict_GetItem_KnownHash(dict, name, ((PyASCIIObject *)name)->hash) : NULL;
        return (MdFound){.where = value != NULL ? MD_FOUND_ON_TYPE : MD_FOUND_OTHERWISE, .value = value};
    }
    for (size_t i = 0; i < Py_ARRAY_LENGTH(getters); i++) {
        PyObject **place = (PyObject **)((char *)obj + getters[i].offset);
        if (getters[i].of == of && PyUnicode_CompareWithASCIIString(name, getters[i].name) == 0 && *place != NULL) {
            return (MdFound){.where = MD_FOUND_PART, .value = *place, .place = place};
        }
    }
    return (MdFound){.where = MD_FOUND_OTHERWISE};
}

/* In the instance, else on its class, where it is `on_class` (NULL: not there). */
static MdFound found_in_instance(PyObject *obj, PyObject *name, PyObject *on_class)
{
    MdFound at = {.where = MD_FOUND_ON_CLASS, .value = on_class};
    if (on_class != NULL && Py_TYPE(on_class)->tp_descr_get != NULL) {
        PyObject *own = _PyType_Lookup(Py_TYPE(obj), dict_string);
        if (own != NULL && !is_slot(own)) { /* the class hides the dictionary */
            return (MdFound){.where = MD_FOUND_OTHERWISE};
        }
    }
    switch (md_instance_dict(obj, &at.place, &at.dict)) {
    case MD_DICT_NONE:
        return at;
    case MD_DICT_INLINE: {
        PyObject *value = NULL;
        int there = md_inline_attr(obj, name, &value);
        at.where = there < 0 ? MD_FOUND_OTHERWISE : MD_FOUND_INLINE;
        at.value = there > 0 ? value : on_class;
        return at;
    }
    case MD_DICT_REAL:
        break;
    case MD_DICT_UNKNOWN:
        return (MdFound){.where = MD_FOUND_OTHERWISE};
    }
    if (!PyDict_CheckExact(at.dict) || !md_dict_has_str_keys(at.dict)) {
        return (MdFound){.where = MD_FOUND_OTHERWISE};
    }
    PyObject *value = _PyDict_GetItem_KnownHash(at.dict, name, ((PyASCIIObject *)name)->hash);
    if (value != NULL) {
        at.where = MD_FOUND_IN_DICT;
        at.value = value;
    }
    return at;
}

MdFound md_find_attr(PyObject *obj, PyObject *name)
{
    PyObject *found = _PyType_Lookup(Py_TYPE(obj), name);
    if (found != NULL && Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        return found_member(found, obj);
    }
    if (found != NULL && Py_IS_TYPE(found, &PyGetSetDescr_Type)) {
        bool own = name == dict_string && !PyType_Check(obj);
        return own ? found_own_dict(obj) : found_getter(found, obj);
    }
    if (PyType_Check(obj)) {
        bool data = found != NULL && Py_TYPE(found)->tp_descr_set != NULL;
        PyObject *value = data ? NULL : _PyType_Lookup((PyTypeObject *)obj, name);
        return (MdFound){.where = MD_FOUND_ON_TYPE, .value = value != NULL ? value : found};
    }
    if (found != NULL && Py_TYPE(found)->tp_descr_set != NULL) {
        return (MdFound){.where = MD_FOUND_ON_CLASS, .value = found};
    }
    return found_in_instance(obj, name, found);
}

/* The real instance dictionary; NULL, perhaps with an exception, where there is none. */
static PyObject *instance_dict(PyObject *obj)
{
    PyObject *descriptor = _PyType_Lookup(Py_TYPE(obj), dict_string);
    if (descriptor == NULL || !is_slot(descriptor)) {
        return NULL;
    }
    PyObject *dict = Py_TYPE(descriptor)->tp_descr_get(descriptor, obj, (PyObject *)Py_TYPE(obj));
    if (dict != NULL && !PyDict_CheckExact(dict)) {
        Py_CLEAR(dict);
    }
    return dict;
}

/* Its entry. */
static PyObject *instance_item(PyObject *obj, PyObject *name)
{
    PyObject *dict = instance_dict(obj);
    PyObject *value = dict != NULL ? Py_XNewRef(PyDict_GetItemWithError(dict, name)) : NULL;
    Py_XDECREF(dict);
    return value;
}

/* What md_find_attr cannot do. */
static PyObject *static_attr_slow(PyObject *obj, PyObject *name)
{
    PyObject *found = _PyType_Lookup(Py_TYPE(obj), name);
    if (found != NULL && is_slot(found)) {
        return read_slot(found, obj);
    }
    if (found == NULL || Py_TYPE(found)->tp_descr_get == NULL) {
        return or_absent(_PyObject_GenericGetAttrWithDict(obj, name, NULL, 1));
    }
    Py_INCREF(found);
    PyObject *value = instance_item(obj, name);
    if (value == NULL && !PyErr_Occurred()) {
        return found;
    }
    Py_DECREF(found);
    return value;
}

PyObject *md_static_attr(PyObject *obj, PyObject *name)
{
    MdFound at = md_find_attr(obj, name);
    return at.where != MD_FOUND_OTHERWISE ? Py_XNewRef(at.value) : static_attr_slow(obj, name);
}

PyObject *md_own_dict(PyObject *obj, PyObject ***place)
{
    PyObject *descriptor = _PyType_Lookup(Py_TYPE(obj), dict_string), *dict;
    if (PyType_Check(obj) || descriptor == NULL || !is_slot(descriptor)
        || md_instance_dict(obj, place, &dict) != MD_DICT_REAL) {
        return NULL; /* a type gives a proxy of its dictionary */
    }
    return PyDict_CheckExact(dict) && md_dict_has_str_keys(dict) ? dict : NULL;
}

int md_has_own_pure(PyObject *obj, PyObject *name)
{
    PyObject *descriptor = _PyType_Lookup(Py_TYPE(obj), dict_string), **place, *dict, *value;
    if (PyType_Check(obj) || descriptor == NULL || !is_slot(descriptor)) {
        return MD_UNSURE;
    }
    switch (md_instance_dict(obj, &place, &dict)) {
    case MD_DICT_REAL:
        if (!PyDict_CheckExact(dict) || !md_dict_has_str_keys(dict)) {
            return MD_UNSURE;
        }
        return _PyDict_GetItem_KnownHash(dict, name, ((PyASCIIObject *)name)->hash) != NULL;
    case MD_DICT_INLINE: {
        int there = md_inline_attr(obj, name, &value);
        return there >= 0 ? there : MD_UNSURE;
    }
    default:
        return MD_UNSURE;
    }
}

int md_has_own(PyObject *obj, PyObject *name)
{
    PyObject *value = instance_item(obj, name);
    Py_XDECREF(value);
    return value != NULL ? 1 : PyErr_Occurred() ? -1 : 0;
}

int md_lacks_members_pure(PyObject *obj, const MdConst *names, Py_ssize_t count)
{
    PyObject **place;
    PyObject *dict = md_own_dict(obj, &place);
    if (dict == NULL) {
        return MD_UNSURE;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (_PyDict_GetItem_KnownHash(dict, names[i].object, names[i].hash) != NULL) {
            return 0;
        }
    }
    return 1;
}

int md_empty_members_pure(PyObject *obj, const MdConst *names, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        MdFound at = md_find_attr(obj, names[i].object);
        if (at.where == MD_FOUND_OTHERWISE) {
            return MD_UNSURE;
        }
        if (at.value == NULL || !Py_IS_TYPE(at.value, &PyODict_Type) || PyDict_GET_SIZE(at.value) != 0) {
            return 0;
        }
    }
    return 1;
}

int md_lacks_members(PyObject *obj, const MdConst *names, Py_ssize_t count)
{
    PyObject *dict = instance_dict(obj);
    int lacks = dict != NULL;
    for (Py_ssize_t i = 0; lacks == 1 && i < count; i++) {
        int has = PyDict_Contains(dict, names[i].object);
        lacks = has < 0 ? -1 : !has;
    }
    Py_XDECREF(dict);
    return PyErr_Occurred() ? -1 : lacks;
}

int md_empty_members(PyObject *obj, const MdConst *names, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = md_static_attr(obj, names[i].object);
        bool empty = value != NULL && Py_IS_TYPE(value, &PyODict_Type) && PyDict_GET_SIZE(value) == 0;
        Py_XDECREF(value);
        if (!empty) {
            return PyErr_Occurred() ? -1 : 0;
        }
    }
    return 1;
}

/* ---- lengths and contents ---- */

Py_ssize_t md_static_len(PyObject *obj)
{
    if (PyList_Check(obj)) {
        return PyList_GET_SIZE(obj);
    }
    if (PyTuple_Check(obj)) {
        return PyTuple_GET_SIZE(obj);
    }
    if (PyDict_Check(obj)) {
        return PyDict_GET_SIZE(obj);
    }
    if (PyUnicode_Check(obj)) {
        return PyUnicode_GET_LENGTH(obj);
    }
    if (PyBytes_Check(obj)) {
        return PyBytes_GET_SIZE(obj);
    }
    if (PyAnySet_Check(obj)) {
        return PySet_GET_SIZE(obj);
    }
    if (PyByteArray_Check(obj)) {
        return PyByteArray_GET_SIZE(obj);
    }
    Py_ssize_t length = -1;
    if (PyRange_Check(obj)) {
        length = PyObject_Size(obj);
    }
    else if (PyObject_TypeCheck(obj, deque_type)) {
        length = deque_type->tp_as_sequence->sq_length(obj);
    }
    if (length < 0) {
        PyErr_Clear();
    }
    return length;
}

/* An OrderedDict keeps an order of its own. */
static int ordered_keys_same(PyObject *mapping, const MdConst *keys, Py_ssize_t count)
{
    PyObject *iterator = PyODict_Type.tp_iter(mapping);
    if (iterator == NULL) {
        return -1;
    }
    Py_ssize_t i = 0;
    bool same = true;
    PyObject *key;
    while (same && (key = PyIter_Next(iterator)) != NULL) {
        same = i < count && md_const_same(&keys[i++], key);
        Py_DECREF(key);
    }
    Py_DECREF(iterator);
    return PyErr_Occurred() ? -1 : same && i == count;
}

int md_dict_keys_same(PyObject *mapping, const MdConst *keys, Py_ssize_t count)
{
    if (PyDict_GET_SIZE(mapping) != count) {
        return 0;
    }
    if (!PyDict_CheckExact(mapping) && PyODict_Check(mapping)) {
        return ordered_keys_same(mapping, keys, count);
    }
    Py_ssize_t position = 0, i = 0;
    PyObject *key;
    while (i < count && PyDict_Next(mapping, &position, &key, NULL)) {
        if (!md_const_same(&keys[i++], key)) {
            return 0;
        }
    }
    return 1;
}

PyObject *md_dict_key(PyObject *mapping, Py_ssize_t index)
{
    if (index >= PyDict_GET_SIZE(mapping)) {
        return NULL;
    }
    if (PyDict_CheckExact(mapping) || !PyODict_Check(mapping)) {
        Py_ssize_t position = 0;
        PyObject *key = NULL;
        for (Py_ssize_t i = 0; i <= index; i++) {
            if (!PyDict_Next(mapping, &position, &key, NULL)) {
                return NULL;
            }
        }
        return Py_NewRef(key);
    }
    PyObject *iterator = PyODict_Type.tp_iter(mapping);
    PyObject *key = iterator != NULL ? PyIter_Next(iterator) : NULL;
    while (key != NULL && index-- > 0) {
        Py_SETREF(key, PyIter_Next(iterator));
    }
    Py_XDECREF(iterator);
    return key;
}

/* ---- different objects ---- */

static size_t slot_of(const void *object, size_t mask)
{
    return ((uintptr_t)object >> 4) * (size_t)0x9E3779B97F4A7C15u >> 20 & mask;
}

/* Puts an object into a table of `mask` + 1 places; false if it is there. */
static bool put(PyObject **table, size_t mask, PyObject *object)
{
    for (size_t i = slot_of(object, mask);; i = (i + 1) & mask) {
        if (table[i] == NULL) {
            table[i] = object;
            return true;
        }
        if (table[i] == object) {
            return false;
        }
    }
}

bool md_all_distinct(PyObject *const *values, const Py_ssize_t *registers, Py_ssize_t own, Py_ssize_t all)
{
    size_t room = 16;
    while (room < (size_t)all * 2) {
        room *= 2;
    }
    PyObject **table = PyMem_Calloc(room, sizeof(PyObject *));
    if (table == NULL) {
        return false; /* not known: no hit */
    }
    bool distinct = true;
    for (Py_ssize_t i = own; i < all; i++) {
        (void)put(table, room - 1, values[registers[i]]);
    }
    for (Py_ssize_t i = 0; distinct && i < own; i++) {
        distinct = put(table, room - 1, values[registers[i]]);
    }
    PyMem_Free(table);
    return distinct;
}

static bool is_plain_set(PyObject *obj, Py_ssize_t count)
{
    return PyAnySet_CheckExact(obj) && PySet_GET_SIZE(obj) == count;
}

bool md_set_items_same(PyObject *set, const MdConst *items, Py_ssize_t count)
{
    if (!is_plain_set(set, count)) {
        return false;
    }
    Py_ssize_t position = 0;
    PyObject *element;
    Py_hash_t hash;
    while (_PySet_NextEntry(set, &position, &element, &hash)) {
        Py_ssize_t i = 0;
        while (i < count && !(items[i].hash == hash && md_const_same(&items[i], element))) {
            i++;
        }
        if (i == count) {
            return false;
        }
    }
    return true;
}

bool md_set_order_same(PyObject *set, const MdConst *items, Py_ssize_t count)
{
    if (!is_plain_set(set, count)) {
        return false;
    }
    Py_ssize_t position = 0, i = 0;
    PyObject *element;
    Py_hash_t hash;
    while (i < count && _PySet_NextEntry(set, &position, &element, &hash)) {
        if (!md_const_same(&items[i++], element)) {
            return false;
        }
    }
    return true;
}

Py_ssize_t md_iterator_len(PyObject *iterator)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(iterator_types); i++) {
        if (Py_IS_TYPE(iterator, iterator_types[i])) {
            return PyObject_LengthHint(iterator, -1);
        }
    }
    return -1;
}

/* ---- once ---- */

static PyTypeObject *type_of(const char *module, const char *name)
{
    PyObject *imported = PyImport_ImportModule(module);
    PyObject *type = imported != NULL ? PyObject_GetAttrString(imported, name) : NULL;
    Py_XDECREF(imported);
    if (type != NULL && !PyType_Check(type)) {
        PyErr_Format(PyExc_ImportError, "minidynamo: %s.%s is no type", module, name);
        Py_CLEAR(type);
    }
    return (PyTypeObject *)type;
}

/* The type of iter(container), whose reference is stolen. */
static PyTypeObject *iterator_type(PyObject *container)
{
    PyObject *iterator = container != NULL ? PyObject_GetIter(container) : NULL;
    Py_XDECREF(container);
    PyTypeObject *type = iterator != NULL ? (PyTypeObject *)Py_NewRef((PyObject *)Py_TYPE(iterator)) : NULL;
    Py_XDECREF(iterator);
    return type;
}

int md_guard_objects_init(void)
{
    if (iterator_types[3] != NULL) {
        return 0;
    }
    if ((dict_string = PyUnicode_InternFromString("__dict__")) == NULL
        || (torch_function_string = PyUnicode_InternFromString("__torch_function__")) == NULL
        || (deque_type = type_of("collections", "deque")) == NULL
        || (iterator_types[0] = iterator_type(PyTuple_New(0))) == NULL
        || (iterator_types[1] = iterator_type(PyList_New(0))) == NULL
        || (iterator_types[2] = iterator_type(PyObject_CallFunction((PyObject *)&PyRange_Type, "i", 0))) == NULL
        || (iterator_types[3] = iterator_type(PyUnicode_New(0, 0))) == NULL) {
        return -1;
    }
    return 0;
}
