"""What nothing else tells of torch's functions and methods: those that are never nodes of a graph, by reason."""

from __future__ import annotations

NEEDS_DATA = "the result depends on the data of a tensor"
READS_STATE = "reads global state"
WRITES_STATE = "changes global state"
OBJECT_STATE = "reads or changes state of the tensor object that is not part of the graph"
NOT_TENSORS = "works on Python numbers, not on tensors"
CONTEXT = "is a context manager"
INPUT_OUTPUT = "reads or writes files"
MEMORY = "exchanges memory with objects outside torch"
DISALLOWED = "is marked with disallow_in_graph"

#: reason -> functions of torch (dotted names below `torch`) that are never nodes, and that nothing else tells
#: apart.
FUNCTION_EXCEPTIONS: dict[str, str] = {
    NEEDS_DATA: "is_nonzero",
    WRITES_STATE: """
        manual_seed seed set_rng_state cuda.manual_seed cuda.manual_seed_all cuda.seed cuda.seed_all
        random.manual_seed random.seed random.set_rng_state random.fork_rng
        set_default_dtype set_default_device set_default_tensor_type use_deterministic_algorithms
        set_deterministic_debug_mode
        set_float32_matmul_precision set_warn_always set_printoptions init_num_threads _C._set_grad_enabled
        autograd.backward autograd.grad
    """,
    READS_STATE: """
        initial_seed get_rng_state random.initial_seed random.get_rng_state
        are_deterministic_algorithms_enabled is_deterministic_algorithms_warn_only_enabled
        get_deterministic_debug_mode
        get_default_device get_float32_matmul_precision is_warn_always_enabled
    """,
    CONTEXT: """
        autocast set_grad_enabled no_grad enable_grad inference_mode random.thread_safe_generator
        autograd.grad_mode.set_multithreading_enabled autograd.set_detect_anomaly autograd.detect_anomaly
    """,
    INPUT_OUTPUT: "save load from_file",
    MEMORY: "from_numpy frombuffer from_dlpack to_dlpack utils.dlpack.to_dlpack utils.dlpack.from_dlpack",
    NOT_TENSORS: """
        sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum sym_sqrt sym_fresh_size typename is_storage
        _sym_sqrt _sym_acos _sym_asin _sym_atan _sym_cos _sym_cosh _sym_log2 _sym_sin _sym_sinh _sym_tan
        _sym_tanh
    """,
}

#: The same for methods of tensors.
METHOD_EXCEPTIONS: dict[str, str] = {
    NEEDS_DATA: """
        item tolist is_nonzero __bool__ __int__ __float__ __complex__ __index__ __nonzero__ __long__
        __contains__
        __repr__ __str__ __format__
    """,
    MEMORY: "numpy __array__ __array_wrap__ __dlpack__ __dlpack_device__ _dlpack_exchange_api",
    OBJECT_STATE: """
        backward register_hook register_post_accumulate_grad_hook retain_grad reinforce storage
        untyped_storage storage_type _typed_storage _storage data_ptr const_data_ptr storage_offset _is_view
        share_memory_ is_shared is_pinned module_load record_stream set_data
        __deepcopy__ __copy__ __reduce_ex__ __reduce__ _reduce_ex_internal __setstate__ __getstate__ __hash__
        __dir__ __sizeof__
        _clear_non_serializable_cached_data _make_subclass _make_wrapper_subclass _make_dtensor as_subclass
        _view_func _view_func_unsafe _rev_view_func_unsafe _fix_weakref _use_count _has_symbolic_sizes_strides
        __torch_function__ __torch_dispatch__ __new__ __init__ __init_subclass__ __subclasshook__
        __class_getitem__
        __getattribute__ __setattr__ __delattr__ __delitem__
    """,
}

#: Operators tagged as data-dependent whose result is known for some arguments.
SOMETIMES_NEEDS_DATA = frozenset({"linalg_lstsq"})
