/* The tensor leaf as the plain C core sees it: PyCapsule "minidynamo._tensor_guards._leaf" holds a TensorLeafApi.
   The core includes no torch header; a check needs the GIL and allocates nothing. */
#ifndef MINIDYNAMO_TENSOR_LEAF_H
#define MINIDYNAMO_TENSOR_LEAF_H

#include <Python.h>
#include <stdint.h>

#define TENSOR_LEAF_CAPSULE "minidynamo._tensor_guards._leaf"
#define TENSOR_LEAF_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int version; /* TENSOR_LEAF_VERSION */
    /* The seven literals of a TENSOR_MATCH row -> a prepared check; NULL with a Python exception set. */
    void *(*make)(PyObject *spec);
    /* 1 if obj has exactly that metadata, else 0. Never raises, runs no Python code. obj is borrowed. */
    int (*check)(const void *leaf, PyObject *obj);
    void (*free)(void *leaf);
    /* 1 if torch's global state is (bits, default dtype name), else 0. Never raises. */
    int (*check_global_state)(uint64_t bits, PyObject *default_dtype);
} TensorLeafApi;

#ifdef __cplusplus
}
#endif

#endif
