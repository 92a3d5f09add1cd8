// The headers that take the time of a build: setup.py compiles them once and puts them before every source. No source relies on
// that; without precompiled headers the build is only slower.
#ifndef MINIDYNAMO_OPENREG_PREFIX_H
#define MINIDYNAMO_OPENREG_PREFIX_H

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#endif
