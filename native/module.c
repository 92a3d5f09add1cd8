/* minidynamo._C: the module and its names. */
#include "eval_frame.h"
#include "guard_vm.h"
#include "optimized.h"
#include "stance.h"
#include "static_access.h"
#include "stats.h"
#include "tail.h"
#include "thread.h"

static PyMethodDef module_methods[] = {
    {"set_convert_frame", md_py_set_convert_frame, METH_O,
     "set_convert_frame(fn | None) -> the one before\n\n"
     "fn(ctx, code, args, globals, builtins, closure | None) compiles a frame that no entry fits: it returns an "
     "object\n"
     "with code, check_fn, validity, handles, owned, has_break, rerunnable, payload; or SKIP, SKIP_SUBTREE or\n"
     "NO_COMPILE, which marks the code; or None: run plain this time; or NotImplemented: run plain\n"
     "this time with capture off below it too. What it raises, the call raises; an exception that it returns is "
     "raised\n"
     "without the compiler's own frames in its traceback.\n\n"
     "The object may also have direct: (handle, inputs, recipe) says that the code only calls the graph behind handle\n"
     "with the flat arguments of these indexes and makes its result by the recipe: (\"output\", index),\n"
     "(\"argument\", index), (\"constant\", object), (\"tuple\", recipes) or (\"list\", recipes). Then C does it.\n"
     "With None for the indexes the graph takes what check_fn, then a GuardProgram with inputs, has loaded.\n"
     "Such an entry must be rerunnable; its code still runs for a profiler."},
    {"set_rerun_callback", md_py_set_rerun_callback, METH_O,
     "set_rerun_callback(fn | None) -> the one before\n\n"
     "fn(entry, error), error being type and message, is called after a graph failed with an exception and plain "
     "Python did not."},
    {"mark_code", (PyCFunction)(void (*)(void))md_py_mark_code, METH_FASTCALL,
     "mark_code(code, mark): SKIP, SKIP_SUBTREE, NO_COMPILE, or 0 for none"},
    {"get_mark", md_py_get_mark, METH_O, "get_mark(code) -> 0, SKIP, SKIP_SUBTREE, NO_COMPILE or TRANSFORMED"},
    {"add_entry", (PyCFunction)(void (*)(void))md_py_add_entry, METH_FASTCALL,
     "add_entry(code, ctx, guarded) -> CacheEntry\n\nguarded: see set_convert_frame"},
    {"cache_entries", md_py_cache_entries, METH_O, "cache_entries(code) -> [CacheEntry], in the order they are tried"},
    {"reset_code", md_py_reset_code, METH_O, "reset_code(code): drop its entries and its mark"},
    {"reset_all", md_py_reset_all, METH_NOARGS, "reset_all(): drop all entries and marks of the process"},
    {"active", md_py_active, METH_NOARGS, "active() -> the OptimizeContext active in this thread, or None"},
    {"swap_active", md_py_swap_active, METH_O,
     "swap_active(ctx | None) -> the one before\n\nMakes ctx active in this thread; None switches capture off."},
    {"force_eager", md_py_force_eager, METH_O,
     "force_eager(flag) -> the flag before\n\nWhile it is set nothing is captured, and no entry runs, in any thread."},
    {"hook_installed", md_py_hook_installed, METH_NOARGS,
     "hook_installed() -> whether the interpreter calls minidynamo's evaluator just now"},
    {"type_lookup", (PyCFunction)(void (*)(void))md_py_type_lookup, METH_FASTCALL,
     "type_lookup(cls, name, default=None): the raw value of `name` along the MRO of `cls`, no descriptor run"},
    {"is_subtype", (PyCFunction)(void (*)(void))md_py_is_subtype, METH_FASTCALL,
     "is_subtype(cls, base): `issubclass` by the MRO alone; `__subclasscheck__` is not asked"},
    {"instance_dict", md_py_instance_dict, METH_O,
     "instance_dict(obj) -> the real instance dictionary, or None where the type has none or hides it behind a\n"
     "descriptor of its own"},
    {"stats", md_py_stats, METH_NOARGS, "stats() -> {event: how often, in this process}"},
    {0},
};

static PyMethodDef after_fork_method = {"after_fork", md_py_after_fork, METH_NOARGS,
                                        "recount the threads that want the evaluator"};
static PyMethodDef at_exit_method = {"at_exit", NULL, METH_NOARGS, "forget the callbacks"};

/* From here on modules are torn down: nothing is compiled any more. */
static PyObject *at_exit(PyObject *module, PyObject *Py_UNUSED(unused))
{
    Py_XDECREF(md_py_set_convert_frame(module, Py_None));
    Py_XDECREF(md_py_set_rerun_callback(module, Py_None));
    Py_RETURN_NONE;
}

/* register(function) of the module named. */
static int call_register(const char *module, const char *function, PyObject *callback, const char *keyword)
{
    PyObject *imported = PyImport_ImportModule(module);
    PyObject *registrar = imported != NULL ? PyObject_GetAttrString(imported, function) : NULL;
    PyObject *args = keyword == NULL ? PyTuple_Pack(1, callback) : PyTuple_New(0);
    PyObject *kwargs = keyword != NULL ? Py_BuildValue("{sO}", keyword, callback) : PyDict_New();
    PyObject *result = NULL;
    if (registrar != NULL && args != NULL && kwargs != NULL) {
        result = PyObject_Call(registrar, args, kwargs);
    }
    Py_XDECREF(imported);
    Py_XDECREF(registrar);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

static int register_callbacks(void)
{
    static bool done; /* once per process: the functions belong to no module object */
    if (done) {
        return 0;
    }
    at_exit_method.ml_meth = at_exit;
    PyObject *after_fork = PyCFunction_New(&after_fork_method, NULL);
    PyObject *exiting = PyCFunction_New(&at_exit_method, NULL);
    int failed = after_fork == NULL || exiting == NULL
                 || call_register("os", "register_at_fork", after_fork, "after_in_child") < 0
                 || call_register("atexit", "register", exiting, NULL) < 0;
    Py_XDECREF(after_fork);
    Py_XDECREF(exiting);
    done = !failed;
    return failed ? -1 : 0;
}

static int add_types(PyObject *module)
{
    static const struct {
        const char *name; /* NULL: not a name of the module */
        PyTypeObject *type;
    } types[] = {
        {"CompileKey", &MdKey_Type},
        {"OptimizeContext", &MdContext_Type},
        {"OptimizedFunction", &MdOptimized_Type},
        {"OptimizedCallable", &MdOptimizedCallable_Type},
        {"ResumeFunction", &MdResume_Type},
        {"EntryHandle", &MdHandle_Type},
        {"Keyed", &MdKeyed_Type},
        {"Validity", &MdValidity_Type},
        {"CacheEntry", &MdEntry_Type},
        {NULL, &MdTail_Type},
        {"GuardProgram", &MdGuards_Type},
        {NULL, &MdSentinel_Type},
        {NULL, &MdThreadWatch_Type},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(types); i++) {
        if (PyType_Ready(types[i].type) < 0) {
            return -1;
        }
        if (types[i].name != NULL && PyModule_AddObjectRef(module, types[i].name, (PyObject *)types[i].type) < 0) {
            return -1;
        }
    }
    return 0;
}

static int add_constants(PyObject *module)
{
    if (md_rerun == NULL && (md_rerun = md_sentinel_new("RERUN")) == NULL) {
        return -1;
    }
    if (PyModule_AddObjectRef(module, "RERUN", md_rerun) < 0 || PyModule_AddIntConstant(module, "SKIP", MD_SKIP) < 0
        || PyModule_AddIntConstant(module, "SKIP_SUBTREE", MD_SKIP_SUBTREE) < 0
        || PyModule_AddIntConstant(module, "NO_COMPILE", MD_NO_COMPILE) < 0
        || PyModule_AddIntConstant(module, "TRANSFORMED", MD_TRANSFORMED) < 0
        || PyModule_AddIntConstant(module, "FRUITLESS_LIMIT", MD_FRUITLESS_LIMIT) < 0) {
        return -1;
    }
    return 0;
}

static int module_exec(PyObject *module)
{
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_ImportError, "minidynamo does not support free-threaded builds of Python");
    return -1;
#endif
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "minidynamo works in the main interpreter only, not in sub-interpreters");
        return -1;
    }
    if (md_cache_init() < 0 || add_types(module) < 0 || add_constants(module) < 0) {
        return -1;
    }
    return register_callbacks();
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "minidynamo._C",
    .m_doc = "The native core of minidynamo: frame evaluator, cache of compiled code, optimized callables.",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__C(void);

PyMODINIT_FUNC PyInit__C(void)
{
    return PyModuleDef_Init(&module_def);
}
