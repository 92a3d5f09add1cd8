#include "direct.h"

#include "stats.h"

/* A recipe is compiled to postfix: leaves push one value, a container takes its items off the stack and pushes itself.
 */
typedef enum { MD_OUTPUT, MD_ARGUMENT, MD_CONSTANT, MD_TUPLE, MD_LIST } MdStepKind;

static const char *const step_names[] = {
    [MD_OUTPUT] = "output", [MD_ARGUMENT] = "argument", [MD_CONSTANT] = "constant",
    [MD_TUPLE] = "tuple",   [MD_LIST] = "list",
};

typedef struct {
    MdStepKind kind;
    union {
        Py_ssize_t index;   /* output, argument */
        Py_ssize_t items;   /* tuple, list */
        PyObject *constant; /* owned */
    };
} MdStep;

struct MdDirect {
    PyObject *spec;
    PyObject *callable; /* the graph; of a bound method the function */
    PyObject *instance; /* of a bound method, or NULL */
    Py_ssize_t outputs; /* how many values the graph returns */
    Py_ssize_t input_count;
    Py_ssize_t step_count;
    Py_ssize_t height;  /* most values on the stack */
    bool inputs_loaded; /* by the guards */
    bool inputs_lead;   /* the inputs are the first flat arguments, in order: they can be passed where they lie */
    bool outputs_whole; /* the result is the tuple of all outputs, in order */
    Py_ssize_t *inputs; /* behind the steps */
    MdStep steps[];
};

/* Recipes beyond this are refused: compiling one recurses, and shared parts of one are compiled once for each use. */
#define MD_DEEPEST_RECIPE 100
#define MD_LONGEST_RECIPE 100000

#define MALFORMED "cache entry: malformed `direct`: "

/* ---- validation ---- */

typedef struct {
    Py_ssize_t outputs, arguments; /* how many there are */
    Py_ssize_t steps;              /* of the recipe so far */
    Py_ssize_t height, highest;    /* values on the stack after them, and at most */
} Measure;

/* Is `value` an index below `count`? -1 with ValueError. */
static int measure_index(PyObject *value, Py_ssize_t count, const char *what)
{
    if (!PyLong_CheckExact(value)) {
        PyErr_Format(PyExc_ValueError, MALFORMED "the index of an %s must be int, not %.100s", what,
                     Py_TYPE(value)->tp_name);
        return -1;
    }
    Py_ssize_t index = PyNumber_AsSsize_t(value, NULL); /* the nearest that fits */
    if (index < 0 || index >= count) {
        PyErr_Format(PyExc_ValueError, MALFORMED "%s %zd does not exist, there are %zd", what, index, count);
        return -1;
    }
    return 0;
}

static int measure_inputs(PyObject *inputs, Py_ssize_t arguments)
{
    if (!PyTuple_Check(inputs)) {
        PyErr_Format(PyExc_ValueError, MALFORMED "the inputs must be a tuple, not %.100s", Py_TYPE(inputs)->tp_name);
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) {
        if (measure_index(PyTuple_GET_ITEM(inputs, i), arguments, "argument") < 0) {
            return -1;
        }
    }
    return 0;
}

/* The kind of a recipe (name, operand), -1 without an exception if it is none. */
static int step_kind(PyObject *recipe)
{
    if (!PyTuple_Check(recipe) || PyTuple_GET_SIZE(recipe) != 2 || !PyUnicode_Check(PyTuple_GET_ITEM(recipe, 0))) {
        return -1;
    }
    for (size_t kind = 0; kind < Py_ARRAY_LENGTH(step_names); kind++) {
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(recipe, 0), step_names[kind]) == 0) {
            return (int)kind;
        }
    }
    return -1;
}

static int measure_recipe(Measure *m, PyObject *recipe, int depth)
{
    int kind = step_kind(recipe);
    if (kind < 0) {
        PyErr_SetString(PyExc_ValueError, MALFORMED "a recipe must be (\"output\", index), (\"argument\", index), "
                                                    "(\"constant\", object), (\"tuple\" or \"list\", (recipe, ...))");
        return -1;
    }
    if (depth > MD_DEEPEST_RECIPE || ++m->steps > MD_LONGEST_RECIPE) {
        PyErr_Format(PyExc_ValueError, MALFORMED "the recipe is too large: more than %d deep or %d parts",
                     MD_DEEPEST_RECIPE, MD_LONGEST_RECIPE);
        return -1;
    }
    PyObject *operand = PyTuple_GET_ITEM(recipe, 1);
    Py_ssize_t items = 0;
    if (kind == MD_TUPLE || kind == MD_LIST) {
        if (!PyTuple_Check(operand)) {
            PyErr_Format(PyExc_ValueError, MALFORMED "the items of a %s must be a tuple of recipes, not %.100s",
                         step_names[kind], Py_TYPE(operand)->tp_name);
            return -1;
        }
        items = PyTuple_GET_SIZE(operand);
        for (Py_ssize_t i = 0; i < items; i++) {
            if (measure_recipe(m, PyTuple_GET_ITEM(operand, i), depth + 1) < 0) {
                return -1;
            }
        }
    }
    else if (kind != MD_CONSTANT
             && measure_index(operand, kind == MD_OUTPUT ? m->outputs : m->arguments, step_names[kind]) < 0) {
        return -1;
    }
    m->height += 1 - items;
    m->highest = Py_MAX(m->highest, m->height);
    return 0;
}

/* The graph (borrowed) among the handles of the entry, NULL with ValueError. */
static MdHandle *graph_handle(PyObject *candidate, PyObject *handles)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(handles); i++) {
        MdHandle *handle = (MdHandle *)PyTuple_GET_ITEM(handles, i);
        if ((PyObject *)handle == candidate && handle->outputs >= 0) {
            return handle;
        }
    }
    PyErr_SetString(PyExc_ValueError, MALFORMED "its handle must be one of `handles` and a graph (n_outputs >= 0)");
    return NULL;
}

/* ---- compiling what has been validated: nothing fails here ---- */

static MdStep *emit(MdStep *at, PyObject *recipe)
{
    MdStepKind kind = (MdStepKind)step_kind(recipe);
    PyObject *operand = PyTuple_GET_ITEM(recipe, 1);
    MdStep step = {.kind = kind};
    switch (kind) {
    case MD_OUTPUT:
    case MD_ARGUMENT:
        step.index = PyNumber_AsSsize_t(operand, NULL);
        break;
    case MD_CONSTANT:
        step.constant = Py_NewRef(operand);
        break;
    case MD_TUPLE:
    case MD_LIST:
        step.items = PyTuple_GET_SIZE(operand);
        for (Py_ssize_t i = 0; i < step.items; i++) {
            at = emit(at, PyTuple_GET_ITEM(operand, i));
        }
        break;
    }
    *at = step;
    return at + 1;
}

static bool is_all_outputs(const MdDirect *self)
{
    const MdStep *last = &self->steps[self->step_count - 1];
    bool all = last->kind == MD_TUPLE && last->items == self->outputs && self->step_count == self->outputs + 1;
    for (Py_ssize_t i = 0; all && i < self->outputs; i++) {
        all = self->steps[i].kind == MD_OUTPUT && self->steps[i].index == i;
    }
    return all;
}

static void compile_inputs(MdDirect *self, PyObject *inputs)
{
    self->inputs_lead = true;
    for (Py_ssize_t i = 0; i < self->input_count; i++) {
        self->inputs[i] = PyNumber_AsSsize_t(PyTuple_GET_ITEM(inputs, i), NULL);
        self->inputs_lead = self->inputs_lead && self->inputs[i] == i;
    }
}

MdDirect *md_direct_new(PyObject *spec, PyObject *handles, Py_ssize_t arguments, Py_ssize_t loaded)
{
    if (!PyTuple_Check(spec)) {
        PyErr_Format(PyExc_ValueError, MALFORMED "it must be None or a tuple (handle, inputs, recipe), not %.100s",
                     Py_TYPE(spec)->tp_name);
        return NULL;
    }
    if (PyTuple_GET_SIZE(spec) != 3) {
        PyErr_Format(PyExc_ValueError, MALFORMED "it must be a tuple (handle, inputs, recipe), not a tuple of %zd",
                     PyTuple_GET_SIZE(spec));
        return NULL;
    }
    PyObject *inputs = PyTuple_GET_ITEM(spec, 1);
    PyObject *recipe = PyTuple_GET_ITEM(spec, 2);
    MdHandle *handle = graph_handle(PyTuple_GET_ITEM(spec, 0), handles);
    if (handle == NULL) {
        return NULL;
    }
    Measure m = {.outputs = handle->outputs, .arguments = arguments};
    bool inputs_loaded = inputs == Py_None;
    if (inputs_loaded && loaded < 0) {
        PyErr_SetString(PyExc_ValueError, MALFORMED "without indexes of inputs `check_fn` must be a GuardProgram");
        return NULL;
    }
    if ((!inputs_loaded && measure_inputs(inputs, arguments) < 0) || measure_recipe(&m, recipe, 1) < 0) {
        return NULL;
    }
    Py_ssize_t input_count = inputs_loaded ? loaded : PyTuple_GET_SIZE(inputs);
    MdDirect *self =
        PyMem_Calloc(1, sizeof(*self) + (size_t)m.steps * sizeof(MdStep) + (size_t)input_count * sizeof(Py_ssize_t));
    if (self == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    bool method = Py_IS_TYPE(handle->target, &PyMethod_Type);
    self->spec = Py_NewRef(spec);
    self->callable = Py_NewRef(method ? PyMethod_GET_FUNCTION(handle->target) : handle->target);
    self->instance = method ? Py_NewRef(PyMethod_GET_SELF(handle->target)) : NULL;
    self->outputs = handle->outputs;
    self->input_count = input_count;
    self->step_count = m.steps;
    self->height = m.highest;
    self->inputs = (Py_ssize_t *)(self->steps + m.steps);
    self->inputs_loaded = inputs_loaded;
    if (!inputs_loaded) {
        compile_inputs(self, inputs);
    }
    (void)emit(self->steps, recipe);
    self->outputs_whole = is_all_outputs(self);
    return self;
}

void md_direct_free(MdDirect *self)
{
    for (Py_ssize_t i = 0; i < self->step_count; i++) {
        if (self->steps[i].kind == MD_CONSTANT) {
            Py_DECREF(self->steps[i].constant);
        }
    }
    Py_DECREF(self->spec);
    Py_DECREF(self->callable);
    Py_XDECREF(self->instance);
    PyMem_Free(self);
}

int md_direct_traverse(MdDirect *self, visitproc visit, void *arg)
{
    for (Py_ssize_t i = 0; i < self->step_count; i++) {
        if (self->steps[i].kind == MD_CONSTANT) {
            Py_VISIT(self->steps[i].constant);
        }
    }
    Py_VISIT(self->spec);
    Py_VISIT(self->callable);
    Py_VISIT(self->instance);
    return 0;
}

bool md_direct_takes_inputs(const MdDirect *self)
{
    return self != NULL && self->inputs_loaded;
}

PyObject *md_direct_spec(MdDirect *self)
{
    return self->spec;
}

/* ---- running ---- */

/* Values that fit on the C stack: inputs of a graph, stack of a recipe. */
#define MD_DIRECT_SMALL 16

static PyObject *call(PyThreadState *ts, MdThread *t, const MdDirect *self, PyObject *const *args, size_t nargsf)
{
    if (MD_LIKELY(t->active == NULL && !md_stack_low(ts, t))) {
        return md_call(ts, self->callable, args, nargsf, NULL);
    }
    return md_scope_call(ts, t, NULL, self->callable, args, nargsf, NULL);
}

/* `place` has the inputs from place[1] on; place[0] is free for the instance of a method, else it is scratch. */
static PyObject *call_in_place(PyThreadState *ts, MdThread *t, const MdDirect *self, PyObject **place)
{
    if (self->instance != NULL) {
        place[0] = self->instance;
        return call(ts, t, self, place, (size_t)self->input_count + 1);
    }
    return call(ts, t, self, place + 1, (size_t)self->input_count | PY_VECTORCALL_ARGUMENTS_OFFSET);
}

static PyObject *call_gathered(PyThreadState *ts, MdThread *t, const MdDirect *self, PyObject *const *values)
{
    PyObject *room[MD_DIRECT_SMALL + 1];
    PyObject **place = room;
    if (MD_UNLIKELY(self->input_count > MD_DIRECT_SMALL)) {
        place = PyMem_New(PyObject *, self->input_count + 1);
        if (place == NULL) {
            return PyErr_NoMemory();
        }
    }
    for (Py_ssize_t i = 0; i < self->input_count; i++) {
        place[i + 1] = values[self->inputs[i]];
    }
    PyObject *result = call_in_place(ts, t, self, place);
    if (MD_UNLIKELY(place != room)) {
        PyMem_Free(place);
    }
    return result;
}

/* Takes the items of a container off the stack. NULL with the items still there. */
static PyObject *container(const MdStep *step, PyObject **items)
{
    PyObject *made = step->kind == MD_TUPLE ? PyTuple_New(step->items) : PyList_New(step->items);
    if (made != NULL && step->items > 0) {
        memcpy(PySequence_Fast_ITEMS(made), items, (size_t)step->items * sizeof(PyObject *));
    }
    return made;
}

static PyObject *leaf(const MdStep *step, PyObject *const *outputs, PyObject *const *values)
{
    return Py_NewRef(step->kind == MD_OUTPUT     ? outputs[step->index]
                     : step->kind == MD_ARGUMENT ? values[step->index]
                                                 : step->constant);
}

/* Runs the recipe on a stack with enough room. */
static PyObject *build_on(const MdDirect *self, PyObject *const *outputs, PyObject *const *values, PyObject **stack)
{
    PyObject **top = stack;
    for (const MdStep *step = self->steps; step < self->steps + self->step_count; step++) {
        if (step->kind != MD_TUPLE && step->kind != MD_LIST) {
            *top++ = leaf(step, outputs, values);
            continue;
        }
        PyObject *made = container(step, top - step->items);
        if (made == NULL) {
            while (top > stack) {
                Py_DECREF(*--top);
            }
            return NULL;
        }
        top -= step->items;
        *top++ = made;
    }
    return stack[0];
}

static PyObject *build(const MdDirect *self, PyObject *const *outputs, PyObject *const *values)
{
    PyObject *room[MD_DIRECT_SMALL];
    if (MD_LIKELY(self->height <= MD_DIRECT_SMALL)) {
        return build_on(self, outputs, values, room);
    }
    PyObject **stack = PyMem_New(PyObject *, self->height);
    if (stack == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *result = build_on(self, outputs, values, stack);
    PyMem_Free(stack);
    return result;
}

/* The same for outputs in a list. The collector may run while containers are made, and then whoever shares the list may
 * change it. */
static PyObject *build_from_list(const MdDirect *self, PyObject *list, PyObject *const *values)
{
    PyObject **outputs = PyMem_New(PyObject *, self->outputs);
    if (outputs == NULL) {
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < self->outputs; i++) {
        outputs[i] = Py_NewRef(PyList_GET_ITEM(list, i));
    }
    PyObject *result = build(self, outputs, values);
    for (Py_ssize_t i = 0; i < self->outputs; i++) {
        Py_DECREF(outputs[i]);
    }
    PyMem_Free(outputs);
    return result;
}

/* The result, of outputs (stolen) that are a tuple or list of the right length. */
static PyObject *finish(const MdDirect *self, PyObject *outputs, PyObject *const *values)
{
    PyObject *result;
    if (self->step_count == 1 && self->steps[0].kind < MD_TUPLE) {
        result = leaf(&self->steps[0], PySequence_Fast_ITEMS(outputs), values);
    }
    else if (self->outputs_whole && PyTuple_CheckExact(outputs)) {
        return outputs;
    }
    else if (PyTuple_Check(outputs)) {
        result = build(self, &PyTuple_GET_ITEM(outputs, 0), values);
    }
    else {
        result = build_from_list(self, outputs, values);
    }
    Py_DECREF(outputs);
    return result;
}

PyObject *md_direct_run(PyThreadState *ts, MdThread *t, MdEntry *entry, PyObject **values, MdInputs *inputs)
{
    const MdDirect *self = entry->direct;
    MD_COUNT(graphs_direct);
    PyObject *outputs = self->inputs_loaded ? call_in_place(ts, t, self, inputs->place)
                        : self->inputs_lead ? call_in_place(ts, t, self, values - 1)
                                            : call_gathered(ts, t, self, values);
    md_inputs_free(inputs);
    outputs = md_graph_result(entry, outputs, self->outputs);
    if (MD_LIKELY(outputs != NULL)) {
        return finish(self, outputs, values);
    }
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return NULL;
    }
    PyErr_Clear();
    return Py_NewRef(md_rerun);
}
