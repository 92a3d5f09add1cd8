#include "stance.h"

bool md_stance_eager;

static MdOptimized *all_optimized; /* linked by next; link points to what points here */

static vectorcallfunc call_of_stance(void)
{
    return md_stance_eager ? md_optimized_call_plain : md_optimized_call;
}

void md_stance_join(MdOptimized *self)
{
    self->vectorcall = call_of_stance();
    self->link = &all_optimized;
    self->next = all_optimized;
    if (self->next != NULL) {
        self->next->link = &self->next;
    }
    all_optimized = self;
}

void md_stance_leave(MdOptimized *self)
{
    if (self->link == NULL) {
        return; /* it never joined */
    }
    *self->link = self->next;
    if (self->next != NULL) {
        self->next->link = self->link;
    }
    self->link = NULL;
}

PyObject *md_py_force_eager(PyObject *Py_UNUSED(module), PyObject *flag)
{
    int eager = PyObject_IsTrue(flag);
    if (eager < 0) {
        return NULL;
    }
    bool before = md_stance_eager;
    md_stance_eager = eager != 0;
    for (MdOptimized *each = all_optimized; each != NULL; each = each->next) {
        each->vectorcall = call_of_stance();
    }
    return PyBool_FromLong(before);
}
