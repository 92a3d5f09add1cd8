/* Everything that differs between CPython 3.11, 3.12, 3.13 and 3.14, and the only file that asks for the version.
 *
 * Above this line of code nobody touches an interpreter frame, a thread state or a monitoring table directly. A frame
 * handed to the functions below is one that the interpreter gave to the evaluator and that has not run an instruction.
 */
#ifndef MD_FRAME_COMPAT_H
#define MD_FRAME_COMPAT_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#ifndef Py_BUILD_CORE_MODULE
#define Py_BUILD_CORE_MODULE 1
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wcast-function-type"
#include <Python.h>
#include <structmember.h>
#if PY_VERSION_HEX < 0x030B0000
#error "minidynamo needs CPython 3.11 or newer"
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include "internal/pycore_interpframe.h"
#else
#include "internal/pycore_frame.h"
#endif
#include "internal/pycore_call.h"
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_object.h"
#if PY_VERSION_HEX >= 0x030D0000
#include "internal/pycore_setobject.h"
#endif
#pragma GCC diagnostic pop

#include <stdbool.h>
#include <stdint.h>

#define MD_PY311 (PY_VERSION_HEX < 0x030C0000)
#define MD_PY312_UP (PY_VERSION_HEX >= 0x030C0000)
#define MD_PY313_UP (PY_VERSION_HEX >= 0x030D0000)
#define MD_PY314_UP (PY_VERSION_HEX >= 0x030E0000)

#define MD_LIKELY(x) __builtin_expect(!!(x), 1)
#define MD_UNLIKELY(x) __builtin_expect(!!(x), 0)

typedef struct _PyInterpreterFrame MdFrame;

/* ---- extra data on code objects: the same three calls under two names ---- */

#if MD_PY312_UP
#define md_extra_request PyUnstable_Eval_RequestCodeExtraIndex
#define md_extra_get PyUnstable_Code_GetExtra
#define md_extra_set PyUnstable_Code_SetExtra
#else
#define md_extra_request _PyEval_RequestCodeExtraIndex
#define md_extra_get _PyCode_GetExtra
#define md_extra_set _PyCode_SetExtra
#endif

/* What md_extra_get reads, without its calls: every version has kept it so (Objects/codeobject.c), and md_cache_init proves
 * it before it is relied on. */
typedef struct {
    Py_ssize_t size;
    void *slots[1];
} MdCodeExtra;

static inline void *md_extra_read(const PyCodeObject *code, Py_ssize_t index)
{
    const MdCodeExtra *extra = code->co_extra;
    return extra != NULL && index < extra->size ? extra->slots[index] : NULL;
}

/* The state of the running thread, which holds the GIL. */
#if MD_PY312_UP
#define md_thread_state PyThreadState_Get
#else
#define md_thread_state _PyThreadState_GET
#endif

/* ---- weak references ---- */

/* What an exact weakref.ref points to (new reference), NULL without an exception once that is dead. */
static inline PyObject *md_weakref_target(PyObject *ref)
{
#if MD_PY313_UP
    PyObject *target = NULL;
    (void)PyWeakref_GetRef(ref, &target); /* fails for what is no weak reference only */
    return target;
#else
    PyObject *target = PyWeakref_GET_OBJECT(ref);
    return target != Py_None ? Py_NewRef(target) : NULL;
#endif
}

/* ---- calls ---- */

/* md_call(ts, callable, args, nargsf, kwnames): PyObject_Vectorcall where the thread state is known already. */
#define md_call _PyObject_VectorcallTstate

/* ---- the evaluator ---- */

/* What the interpreter calls for frames: _PyInterpreterState_GetEvalFrameFunc, read in place. */
static inline _PyFrameEvalFunction md_evaluator_of(PyThreadState *ts)
{
    _PyFrameEvalFunction evaluator = ts->interp->eval_frame;
    return evaluator != NULL ? evaluator : _PyEval_EvalFrameDefault; /* NULL from 3.12 */
}

/* ---- the exception being raised, as one owned object ---- */

/* Takes the current exception away (normalised, NULL if none). */
static inline PyObject *md_exc_take(void)
{
#if MD_PY312_UP
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (type == NULL) {
        return NULL;
    }
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback != NULL) {
        PyException_SetTraceback(value, traceback);
    }
    Py_DECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

/* Makes `exc` (stolen, may be NULL) the current exception again. */
static inline void md_exc_put(PyObject *exc)
{
#if MD_PY312_UP
    PyErr_SetRaisedException(exc);
#else
    if (exc == NULL) {
        PyErr_Clear();
    }
    else {
        PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(exc)), exc, PyException_GetTraceback(exc));
    }
#endif
}

/* ---- reading an unstarted frame ---- */

/* The code object that the frame runs (borrowed). */
static inline PyCodeObject *md_frame_code(MdFrame *f)
{
#if MD_PY314_UP
    return (PyCodeObject *)PyStackRef_AsPyObjectBorrow(f->f_executable);
#elif MD_PY313_UP
    return (PyCodeObject *)f->f_executable;
#else
    return f->f_code;
#endif
}

/* The function that the frame belongs to (borrowed). */
static inline PyFunctionObject *md_frame_func(MdFrame *f)
{
#if MD_PY314_UP
    return (PyFunctionObject *)PyStackRef_AsPyObjectBorrow(f->f_funcobj);
#elif MD_PY312_UP
    return (PyFunctionObject *)f->f_funcobj;
#else
    return f->f_func;
#endif
}

/* Local number i (borrowed, NULL if unbound). Only arguments are bound in an unstarted frame, as plain values. */
static inline PyObject *md_frame_local(MdFrame *f, Py_ssize_t i)
{
#if MD_PY314_UP
    return PyStackRef_AsPyObjectBorrow(f->localsplus[i]);
#else
    return f->localsplus[i];
#endif
}

/* True for an ordinary function frame: owned by the thread (no generator), no mapping of locals (no module, class or
 * exec body), no frame object yet and not one instruction run. */
static inline bool md_frame_is_fresh(MdFrame *f)
{
    if (f->owner != FRAME_OWNED_BY_THREAD || f->f_locals != NULL || f->frame_obj != NULL) {
        return false;
    }
#if MD_PY313_UP
    return f->instr_ptr == _PyCode_CODE(md_frame_code(f));
#else
    return f->prev_instr == _PyCode_CODE(f->f_code) - 1;
#endif
}

/* The innermost Python frame of the thread that has a function, or NULL. */
static inline MdFrame *md_current_frame(PyThreadState *ts)
{
#if MD_PY313_UP
    MdFrame *f = ts->current_frame;
#else
    MdFrame *f = ts->cframe->current_frame;
#endif
#if MD_PY314_UP
    while (f != NULL && f->owner >= FRAME_OWNED_BY_INTERPRETER) {
        f = f->previous;
    }
#elif MD_PY312_UP
    while (f != NULL && f->owner == FRAME_OWNED_BY_CSTACK) {
        f = f->previous;
    }
#endif
    return f;
}

/* ---- changing an unstarted frame ---- */

/* Pointer-sized words that a frame of this code takes on the thread's data stack. */
static inline Py_ssize_t md_code_frame_size(PyCodeObject *code)
{
#if MD_PY312_UP
    return code->co_framesize;
#else
    return code->co_nlocalsplus + code->co_stacksize + (Py_ssize_t)FRAME_SPECIALS_SIZE;
#endif
}

/* Makes an unstarted frame run `code` instead of its own code, in place; the frame keeps its function, so globals and
 * closure stay right. The caller has established that arguments and free variables of the two codes agree.
 * Returns false, with nothing changed, if the frame is not on top of the data stack or the chunk has no room. */
static inline bool md_frame_retarget(PyThreadState *ts, MdFrame *f, PyCodeObject *code)
{
    PyCodeObject *old = md_frame_code(f);
    PyObject **base = (PyObject **)f;
    Py_ssize_t size = md_code_frame_size(code);
    if (base + md_code_frame_size(old) != ts->datastack_top || size >= ts->datastack_limit - base) {
        return false;
    }
    ts->datastack_top = base + size;
    for (int i = old->co_nlocalsplus; i < code->co_nlocalsplus; i++) {
#if MD_PY314_UP
        f->localsplus[i] = PyStackRef_NULL;
#else
        f->localsplus[i] = NULL;
#endif
    }
#if MD_PY314_UP
    _PyStackRef old_ref = f->f_executable;
    f->f_executable = PyStackRef_FromPyObjectNew((PyObject *)code);
    f->stackpointer = f->localsplus + code->co_nlocalsplus;
    f->instr_ptr = _PyCode_CODE(code);
    PyStackRef_CLOSE(old_ref);
#else
    Py_INCREF(code);
#if MD_PY313_UP
    f->f_executable = (PyObject *)code;
    f->instr_ptr = _PyCode_CODE(code);
#else
    f->f_code = code;
    f->prev_instr = _PyCode_CODE(code) - 1;
#endif
    f->stacktop = code->co_nlocalsplus;
    Py_DECREF(old);
#endif
    return true;
}

/* Gives back an unstarted frame that will not be run. From 3.12 the evaluator clears and pops the frame that it was
 * given; in 3.11 its caller does. An exception that is set stays set. */
static inline void md_frame_discard(PyThreadState *ts, MdFrame *f)
{
#if MD_PY312_UP
    int count = md_frame_code(f)->co_nlocalsplus;
#if MD_PY314_UP
    for (int i = 0; i < count; i++) {
        PyStackRef_XCLOSE(f->localsplus[i]);
    }
    f->stackpointer = f->localsplus;
    PyStackRef_CLOSE(f->f_funcobj);
    PyStackRef_CLOSE(f->f_executable);
#else
    for (int i = 0; i < count; i++) {
        Py_XDECREF(f->localsplus[i]);
    }
    Py_DECREF(f->f_funcobj);
    Py_DECREF((PyObject *)md_frame_code(f));
#endif
#if MD_PY313_UP
    _PyThreadState_PopFrame(ts, f);
#else
    PyObject **base = (PyObject **)f;
    _PyStackChunk *chunk = ts->datastack_chunk;
    if (base == &chunk->data[0]) { /* the first frame of a later chunk: the chunk goes with it */
        _PyStackChunk *previous = chunk->previous;
        ts->datastack_chunk = previous;
        ts->datastack_top = &previous->data[previous->top];
        ts->datastack_limit = (PyObject **)((char *)previous + previous->size);
        PyObjectArenaAllocator arena;
        PyObject_GetArenaAllocator(&arena);
        arena.free(arena.ctx, chunk, chunk->size);
    }
    else {
        ts->datastack_top = base;
    }
#endif
#else
    (void)ts;
    (void)f;
#endif
}

/* Does somebody hold the frame object of a frame that has returned, and that still lies there? Never from 3.12. */
static inline bool md_frame_is_held(MdFrame *f)
{
#if MD_PY312_UP
    (void)f;
    return false;
#else
    return f->frame_obj != NULL && Py_REFCNT(f->frame_obj) > 1;
#endif
}

/* A frame that has returned lets go of its values. From 3.12 it is gone; in 3.11 it lies there, with all its values, until
 * the evaluator returns. One whose frame object somebody holds keeps them. */
static inline void md_frame_let_go(MdFrame *f)
{
#if MD_PY312_UP
    (void)f;
#else
    if (MD_UNLIKELY(md_frame_is_held(f))) {
        return;
    }
    Py_CLEAR(f->frame_obj);
    for (PyObject **local = f->localsplus, **end = local + f->f_code->co_nlocalsplus; local < end; local++) {
        Py_CLEAR(*local);
    }
#endif
}

/* An unstarted frame of `func` that runs `code` on `count` arguments (stolen), which are all that it takes, made where `ended`
 * lies: a frame that the evaluator has run and that has let go of its values. What the evaluator was given it gives back as
 * before: in 3.11 `ended` itself begins anew and is still its caller's; from 3.12 the new frame is the evaluator's own.
 * NULL with nothing changed where there is no room, or if somebody holds the frame object of `ended`. */
static inline MdFrame *md_frame_after(PyThreadState *ts, MdFrame *ended, PyFunctionObject *func, PyCodeObject *code,
                                      PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t size = md_code_frame_size(code);
#if MD_PY312_UP
    (void)ended;
    if (ts->datastack_top == NULL || size >= ts->datastack_limit - ts->datastack_top) {
        return NULL;
    }
    MdFrame *f = (MdFrame *)ts->datastack_top;
    ts->datastack_top += size;
#if MD_PY314_UP
    _PyFrame_Initialize(ts, f, PyStackRef_FromPyObjectNew((PyObject *)func), NULL, code, (int)count, NULL);
    for (Py_ssize_t i = 0; i < count; i++) {
        f->localsplus[i] = PyStackRef_FromPyObjectSteal(args[i]);
    }
#else
    _PyFrame_Initialize(f, (PyFunctionObject *)Py_NewRef((PyObject *)func), NULL, code, (int)count);
    memcpy(f->localsplus, args, (size_t)count * sizeof(PyObject *));
#endif
    return f;
#else
    PyCodeObject *old = ended->f_code;
    PyObject **base = (PyObject **)ended;
    if (ended->frame_obj != NULL || base + md_code_frame_size(old) != ts->datastack_top
        || size >= ts->datastack_limit - base) {
        return NULL;
    }
    ts->datastack_top = base + size;
    PyObject **local = ended->localsplus;
    for (PyObject **cleared = local + old->co_nlocalsplus, **end = local + code->co_nlocalsplus; cleared < end;) {
        *cleared++ = NULL;
    }
    for (PyObject *const *end = args + count; args < end;) {
        *local++ = *args++;
    }
    PyFunctionObject *olds = ended->f_func;
    ended->f_func = (PyFunctionObject *)Py_NewRef((PyObject *)func);
    ended->f_globals = func->func_globals;
    ended->f_builtins = func->func_builtins;
    ended->f_code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    ended->prev_instr = _PyCode_CODE(code) - 1;
    ended->stacktop = code->co_nlocalsplus;
    Py_DECREF(olds);
    Py_DECREF(old);
    return ended;
#endif
}

/* ---- instance dictionaries ---- */

typedef enum {
    MD_DICT_NONE,    /* objects of this type have none */
    MD_DICT_REAL,    /* there is a dict object */
    MD_DICT_INLINE,  /* attributes lie in the object, or there are none yet */
    MD_DICT_UNKNOWN, /* somewhere else */
} MdDictState;

/* Where the object keeps its instance dictionary: `*slot` is the place of the pointer, `*dict` (borrowed) the dict. */
static inline MdDictState md_instance_dict(PyObject *obj, PyObject ***slot, PyObject **dict)
{
    PyTypeObject *type = Py_TYPE(obj);
    if ((type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0) {
#if MD_PY313_UP
        *slot = (PyObject **)&_PyObject_ManagedDictPointer(obj)->dict;
#elif MD_PY312_UP
        *slot = (PyObject **)_PyObject_DictOrValuesPointer(obj);
        if (_PyDictOrValues_IsValues(*_PyObject_DictOrValuesPointer(obj))) {
            return MD_DICT_INLINE;
        }
#else
        *slot = _PyObject_ManagedDictPointer(obj);
#endif
    }
    else if (type->tp_dictoffset == 0) {
        return MD_DICT_NONE;
    }
    else if (type->tp_dictoffset < 0) {
        return MD_DICT_UNKNOWN;
    }
    else {
        *slot = (PyObject **)((char *)obj + type->tp_dictoffset);
    }
    *dict = **slot;
    return *dict != NULL ? MD_DICT_REAL : MD_DICT_INLINE;
}

/* The attribute `name` (an interned str) of an object in state MD_DICT_INLINE, borrowed. 1: there is one; 0: there is none;
 * -1: it lies somewhere else. */
static inline int md_inline_attr(PyObject *obj, PyObject *name, PyObject **value)
{
    PyTypeObject *type = Py_TYPE(obj);
    PyDictValues *values = NULL;
    if ((type->tp_flags & Py_TPFLAGS_MANAGED_DICT) == 0) {
        return 0; /* a dict is made at the first store */
    }
#if MD_PY313_UP
    if ((type->tp_flags & Py_TPFLAGS_INLINE_VALUES) == 0) {
        return 0;
    }
    values = _PyObject_InlineValues(obj);
    if (!values->valid) {
        return -1;
    }
#elif MD_PY312_UP
    PyDictOrValues held = *_PyObject_DictOrValuesPointer(obj);
    values = _PyDictOrValues_IsValues(held) ? _PyDictOrValues_GetValues(held) : NULL;
#else
    values = *_PyObject_ValuesPointer(obj);
#endif
    PyDictKeysObject *keys = ((PyHeapTypeObject *)type)->ht_cached_keys;
    if (values == NULL || keys == NULL) {
        return values == NULL ? 0 : -1;
    }
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++) {
        if (entries[i].me_key == name || PyUnicode_Compare(entries[i].me_key, name) == 0) {
            *value = values->values[i];
            return *value != NULL;
        }
    }
    return 0;
}

/* Does a look-up of a str in this dict run C code only? (Else a key of it may be an object with an __eq__ of its own.) */
static inline bool md_dict_has_str_keys(PyObject *dict)
{
    return DK_IS_UNICODE(((PyDictObject *)dict)->ma_keys);
}

/* ---- versions of dictionaries and types ---- */

/* Are changes of dictionaries numbered, all in one sequence? Each gets a number that is higher by one than the one before. */
#define MD_HAS_DICT_VERSIONS (!MD_PY312_UP)

/* A word that is another one after every change of the dict, and that no other dict ever has; NULL where there is none:
 * from 3.12 a watcher tells of changes. */
static inline const uint64_t *md_dict_version(PyObject *dict)
{
#if MD_PY312_UP
    (void)dict;
    return NULL;
#else
    return &((PyDictObject *)dict)->ma_version_tag;
#endif
}

/* Whether a watcher is told of every change of the dict. 3.13.0 forgets stores to attributes that lie in the object. */
static inline bool md_dict_watchable(PyObject *dict)
{
#if MD_PY313_UP
    return Py_Version >= 0x030D0100 || ((PyDictObject *)dict)->ma_values == NULL;
#else
    (void)dict;
    return MD_PY312_UP;
#endif
}

/* A dict of an object in which its values lie: the words that change when they come to lie elsewhere, when the value of a
 * key becomes another one, or, where there is no place for it (`value` is NULL), when objects of the class get a new key. */
typedef struct {
    const void *values;
    PyObject *const *value;
    const void *keys;
} MdKeyWords;

/* For dicts that no watcher tells of; false where there are no such words. The key is an exact str. */
static inline bool md_dict_key_words(PyObject *dict, PyObject *key, MdKeyWords *words)
{
#if MD_PY313_UP
    PyDictObject *mp = (PyDictObject *)dict;
    if (mp->ma_values == NULL || !mp->ma_values->embedded || !mp->ma_values->valid) {
        return false;
    }
    *words = (MdKeyWords){.values = &mp->ma_values, .keys = &mp->ma_keys->dk_nentries};
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(mp->ma_keys);
    for (Py_ssize_t i = 0; i < mp->ma_keys->dk_nentries; i++) {
        if (entries[i].me_key == key || PyUnicode_Compare(entries[i].me_key, key) == 0) {
            words->value = &mp->ma_values->values[i];
            break;
        }
    }
    return true;
#else
    (void)dict;
    (void)key;
    (void)words;
    return false;
#endif
}

/* The dict whose version is at this address; of any other address something that is no dict, to be compared only. */
static inline PyObject *md_dict_of_version(const void *at)
{
#if MD_PY312_UP
    (void)at;
    return NULL;
#else
    return (PyObject *)((uintptr_t)at - offsetof(PyDictObject, ma_version_tag));
#endif
}

/* Watchers of dictionaries, which 3.11 does not have: there nothing can be watched. */
#if MD_PY312_UP
typedef PyDict_WatchEvent MdDictEvent;
#define md_watcher_new PyDict_AddWatcher
#define md_watcher_watch PyDict_Watch
#define md_watcher_unwatch PyDict_Unwatch
#define MD_EVENT_IS_DEATH(event) ((event) == PyDict_EVENT_DEALLOCATED)
#define MD_EVENT_HAS_KEY(event) \
    ((event) == PyDict_EVENT_ADDED || (event) == PyDict_EVENT_MODIFIED || (event) == PyDict_EVENT_DELETED)
#else
typedef int MdDictEvent;
static inline int md_watcher_new(int (*callback)(MdDictEvent, PyObject *, PyObject *, PyObject *))
{
    (void)callback;
    PyErr_SetString(PyExc_RuntimeError, "no watchers");
    return -1;
}
static inline int md_watcher_watch(int id, PyObject *dict)
{
    (void)id;
    (void)dict;
    return -1;
}
#define md_watcher_unwatch md_watcher_watch
#define MD_EVENT_IS_DEATH(event) ((void)(event), false)
#define MD_EVENT_HAS_KEY(event) ((void)(event), false)
#endif

/* A word (with the padding behind it) that is another one after every change of the type or of one of its bases, and that
 * no other type ever has; NULL while the type has no version. */
static inline const uint64_t *md_type_version(PyTypeObject *type)
{
#if MD_PY313_UP
    bool valid = type->tp_version_tag != 0; /* the flag is no longer used */
#else
    bool valid = type->tp_version_tag != 0 && (type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG) != 0;
#endif
    return valid ? (const uint64_t *)(const void *)&type->tp_version_tag : NULL;
}

/* ---- tracing ---- */

#if MD_PY312_UP
/* Does one of these tools (bits), which are told of each function that begins, look at its lines then? It asks for them
 * function by function: sys.monitoring.set_local_events. */
static inline bool md_one_looks_at_lines(const PyInterpreterState *interp, uint8_t tools)
{
    for (int tool = 0; tool < PY_MONITORING_SYS_PROFILE_ID; tool++) {
        PyObject *const *callbacks = interp->monitoring_callables[tool];
        if ((tools >> tool & 1) != 0
            && (callbacks[PY_MONITORING_EVENT_LINE] != NULL || callbacks[PY_MONITORING_EVENT_INSTRUCTION] != NULL)) {
            return true;
        }
    }
    return false;
}
#endif

/* True if this thread runs a trace or profile function just now, or a debugger or coverage tool wants to see every
 * line: sys.settrace, or sys.monitoring with LINE or INSTRUCTION events. */
static inline bool md_tracing(PyThreadState *ts)
{
#if MD_PY312_UP
    const uint8_t *tools = ts->interp->monitors.tools;
    uint8_t starts = tools[PY_MONITORING_EVENT_PY_START];
    return ts->tracing != 0 || ts->c_tracefunc != NULL
           || (tools[PY_MONITORING_EVENT_LINE] | tools[PY_MONITORING_EVENT_INSTRUCTION]) != 0
           || (MD_UNLIKELY(starts != 0) && md_one_looks_at_lines(ts->interp, starts));
#else
    return ts->tracing != 0 || ts->c_tracefunc != NULL;
#endif
}

/* True if sys.setprofile or sys.monitoring wants to know of calls and returns of Python functions. */
static inline bool md_profiling(PyThreadState *ts)
{
#if MD_PY312_UP
    const uint8_t *tools = ts->interp->monitors.tools;
    return (tools[PY_MONITORING_EVENT_PY_START] | tools[PY_MONITORING_EVENT_PY_RETURN]) != 0;
#else
    return ts->c_profilefunc != NULL;
#endif
}

/* True if sys.monitoring.set_local_events named this code: another code in its place would be silent. */
static inline bool md_code_monitored(PyCodeObject *code)
{
#if MD_PY312_UP
    _PyCoMonitoringData *data = code->_co_monitoring;
    if (data != NULL) {
        for (size_t i = 0; i < sizeof(data->local_monitors.tools); i++) {
            if (data->local_monitors.tools[i] != 0) {
                return true;
            }
        }
    }
#else
    (void)code;
#endif
    return false;
}

/* True while the cyclic collector runs: frames entered now are finalizers, weakref callbacks and gc callbacks. */
static inline bool md_collecting(PyThreadState *ts)
{
    return ts->interp->gc.collecting != 0;
}

/* ---- the C recursion budget of 3.12 and 3.13 ---- */

/* While an evaluator is installed every Python call is also a C call and takes from this budget. */
#if MD_PY312_UP && !MD_PY314_UP
#define MD_C_BUDGET(ts) (&(ts)->c_recursion_remaining)
#else
#define MD_C_BUDGET(ts) ((void)(ts), (int *)NULL)
#endif

#endif
