/* c_api.h: runs compiled models from C, and from languages that call C. The ABI is stable: functions and the leading
 * fields of structs keep their meaning, new ones are added behind; symbols have versions. Link libcollage_runtime.
 *
 *   collage_executable* model;
 *   collage_instance* run;
 *   if (collage_executable_load("model.clg", &model) != COLLAGE_OK ||
 *       collage_instance_create(model, &run) != COLLAGE_OK ||
 *       collage_instance_copy_input(run, 0, image, sizeof image) != COLLAGE_OK ||
 *       collage_instance_run(run) != COLLAGE_OK ||
 *       collage_instance_copy_output(run, 0, scores, sizeof scores) != COLLAGE_OK) {
 *     fprintf(stderr, "%s\n", collage_last_error()->text);
 *   }
 *
 * Every function that can fail returns a status and leaves its results as they were; the reason is in
 * `collage_last_error`. Null pointers and numbers out of range are errors (COLLAGE_ERROR_INPUT); handles that were
 * released, and buffers smaller than said, cannot be told and must not be given. `_release` takes null.
 *
 * Executables may be used by several threads at once; of instances each thread has its own. Values are dense, row-major
 * and in the processor's memory. */
#ifndef COLLAGE_RUNTIME_C_API_H_
#define COLLAGE_RUNTIME_C_API_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define COLLAGE_API __attribute__((visibility("default")))
#else
#define COLLAGE_API
#endif

/* What this header describes. A library with a smaller `collage_abi_version()` lacks some of it. */
#define COLLAGE_ABI_VERSION 4

/* Bound buffers begin at a multiple of this many bytes. */
#define COLLAGE_ALIGNMENT 64

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status and errors ---- */

/* The cause of a failure; equal to the exit codes of the command line. */
typedef int32_t collage_status;
enum {
  COLLAGE_OK = 0,
  COLLAGE_ERROR_INPUT = 2,       /* an argument or a file is wrong */
  COLLAGE_ERROR_UNSUPPORTED = 3, /* valid, but not handled */
  COLLAGE_ERROR_UNAVAILABLE = 4, /* this machine lacks something: a toolchain, processor features */
  COLLAGE_ERROR_CORRUPT = 5,     /* a file is damaged, or no executable */
  COLLAGE_ERROR_RESOURCE = 6,    /* memory, disk, permissions */
  COLLAGE_ERROR_INTERNAL = 70    /* Collage's own mistake */
};

/* Texts are never null, but may be empty. */
typedef struct collage_error {
  collage_status status;
  const char* category; /* "input", "unsupported", … */
  const char* message;  /* what was found and what was wanted */
  const char* where;    /* a file, or empty */
  const char* hint;     /* what to do, or empty */
  const char* text;     /* all of it: "where: error: message" and, on a second line, "hint: …" */
} collage_error;

/* The last failure of the calling thread, COLLAGE_OK with empty texts when there was none. Valid until the thread's
 * next failure or its end. */
COLLAGE_API const collage_error* collage_last_error(void);

/* "ok", "input", "unsupported", …; "unknown" for a number that is no status. */
COLLAGE_API const char* collage_status_name(collage_status status);

/* COLLAGE_ABI_VERSION of the library, and its release, such as "0.1.0". */
COLLAGE_API uint32_t collage_abi_version(void);
COLLAGE_API const char* collage_version(void);

/* ---- tensors, laid out as DLPack's ---- */

#ifdef DLPACK_DLPACK_H_ /* dlpack.h was included before: its own types */
typedef DLDataType collage_dtype;
typedef DLDevice collage_device;
typedef DLTensor collage_tensor;
#else
typedef struct collage_dtype {
  uint8_t code; /* COLLAGE_DTYPE_… */
  uint8_t bits;
  uint16_t lanes;
} collage_dtype;

typedef struct collage_device {
  int32_t device_type; /* COLLAGE_DEVICE_CPU */
  int32_t device_id;
} collage_device;

typedef struct collage_tensor {
  void* data;
  collage_device device;
  int32_t ndim;
  collage_dtype dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; null: dense, row-major */
  uint64_t byte_offset;
} collage_tensor;
#endif

enum {
  COLLAGE_DTYPE_INT = 0,
  COLLAGE_DTYPE_UINT = 1,
  COLLAGE_DTYPE_FLOAT = 2,
  COLLAGE_DTYPE_BFLOAT = 4,
  COLLAGE_DTYPE_BOOL = 6 /* 8 bits */
};
enum { COLLAGE_DEVICE_CPU = 1 };

/* ---- executables ---- */

/* A compiled model. Immutable; may be used by several threads at once. */
typedef struct collage_executable collage_executable;

typedef int32_t collage_file_kind;
enum {
  COLLAGE_FILE_OTHER = 0,      /* not written by Collage */
  COLLAGE_FILE_EXECUTABLE = 1, /* a plan of dataflow */
  COLLAGE_FILE_BYTECODE = 2    /* a program with control flow: needs libcollage_ir beside this library */
};

/* What the file at `path` begins as. Fails when it cannot be read. */
COLLAGE_API collage_status collage_file_get_kind(const char* path, collage_file_kind* kind);

/* Maps the file at `path`; its constants are read when first needed. Of a program with control flow, which is read
 * whole, `main` is run; its parameters are tensors, its result is one or a tuple of such, else loading fails with
 * COLLAGE_ERROR_UNSUPPORTED. It fails with COLLAGE_ERROR_UNAVAILABLE where a program needs libcollage_ir and that is
 * not there. Before ABI version 2 programs were COLLAGE_ERROR_UNSUPPORTED. */
COLLAGE_API collage_status collage_executable_load(const char* path, collage_executable** executable);

/* The same from the `size` bytes of such a file, which are copied. Errors call them `name`; null: "memory". */
COLLAGE_API collage_status collage_executable_load_memory(const void* bytes, size_t size, const char* name,
                                                          collage_executable** executable);

/* The same, used where they lie: aligned to COLLAGE_ALIGNMENT, and there, unchanged, until the executable and all its
 * instances are released, as of a model that is linked into a program. Since ABI version 3. */
COLLAGE_API collage_status collage_executable_load_static(const void* bytes, size_t size, const char* name,
                                                          collage_executable** executable);

/* From now on this process loads only files that `collage sign` has signed by the private half of the key in the PEM
 * file at `public_key` (SECURITY.md); bytes in memory are refused. It cannot be taken back. Since ABI version 4. */
COLLAGE_API collage_status collage_require_signatures(const char* public_key);

/* Reads the whole file at `path` and checks all checksums; loading checks the plan and machine code only. */
COLLAGE_API collage_status collage_executable_verify(const char* path);

/* Instances made from it keep what they need. */
COLLAGE_API void collage_executable_release(collage_executable* executable);

/* An input or output. Texts and shape belong to the executable. */
typedef struct collage_tensor_info {
  const char* name;
  collage_dtype dtype;
  int32_t ndim;
  const int64_t* shape; /* `ndim` sizes, outermost first; -1 where known at run time only */
  uint64_t size_bytes;  /* 0 where known at run time only */
} collage_tensor_info;

COLLAGE_API collage_status collage_executable_num_inputs(const collage_executable* executable, size_t* count);
COLLAGE_API collage_status collage_executable_num_outputs(const collage_executable* executable, size_t* count);

/* `info_size` is sizeof(collage_tensor_info) as the caller was compiled; what the library does not know is zero. */
COLLAGE_API collage_status collage_executable_get_input(const collage_executable* executable, size_t index,
                                                        collage_tensor_info* info, size_t info_size);
COLLAGE_API collage_status collage_executable_get_output(const collage_executable* executable, size_t index,
                                                         collage_tensor_info* info, size_t info_size);

COLLAGE_API collage_status collage_executable_find_input(const collage_executable* executable, const char* name,
                                                         size_t* index);
COLLAGE_API collage_status collage_executable_find_output(const collage_executable* executable, const char* name,
                                                          size_t* index);

/* The process's threads that it was compiled for and runs with; instances that run at once take turns for them. */
COLLAGE_API collage_status collage_executable_num_threads(const collage_executable* executable, int32_t* num_threads);

/* JSON: the model, the machine, how the choice was made; of a program, a list "regions" of such. The executable's. */
COLLAGE_API collage_status collage_executable_metadata(const collage_executable* executable, const char** json);

/* ---- running ---- */

/* One execution of an executable: its working memory, kernels, inputs and outputs. Used by one thread at a time; a call
 * made while another is in progress fails. */
typedef struct collage_instance collage_instance;

/* Loads the kernels, and sets the process's number of threads to the executable's. */
COLLAGE_API collage_status collage_instance_create(const collage_executable* executable, collage_instance** instance);
COLLAGE_API void collage_instance_release(collage_instance* instance);

/* Reads input `index` from `data`, without a copy, in this and all later runs. `size_bytes` is that of the whole input;
 * `data` is aligned to COLLAGE_ALIGNMENT and stays the caller's, who keeps it until something else is bound or the
 * instance released. */
COLLAGE_API collage_status collage_instance_bind_input(collage_instance* instance, size_t index, const void* data,
                                                       size_t size_bytes);
/* The same of a DLPack tensor, of which dtype and shape are checked too. Without strides, or dense ones. */
COLLAGE_API collage_status collage_instance_bind_input_tensor(collage_instance* instance, size_t index,
                                                              const collage_tensor* tensor);
/* Copies `data`, of any alignment, into memory of the instance, from which the input is read from then on. */
COLLAGE_API collage_status collage_instance_copy_input(collage_instance* instance, size_t index, const void* data,
                                                       size_t size_bytes);

/* Writes output `index` straight to `data`; otherwise as `collage_instance_bind_input`. */
COLLAGE_API collage_status collage_instance_bind_output(collage_instance* instance, size_t index, void* data,
                                                        size_t size_bytes);
COLLAGE_API collage_status collage_instance_bind_output_tensor(collage_instance* instance, size_t index,
                                                               const collage_tensor* tensor);
/* Copies what the last run wrote. */
COLLAGE_API collage_status collage_instance_copy_output(collage_instance* instance, size_t index, void* data,
                                                        size_t size_bytes);

/* Where input `index` is read from: what was bound, or else memory of the instance, to be filled. Valid until something
 * else is bound; data and shape are not the caller's to release. */
COLLAGE_API collage_status collage_instance_get_input(collage_instance* instance, size_t index, collage_tensor* tensor);
/* Where output `index` is written to: what was bound, or else memory of the instance. Each run overwrites it. */
COLLAGE_API collage_status collage_instance_get_output(collage_instance* instance, size_t index,
                                                       collage_tensor* tensor);

/* Computes all outputs. Every input must have been bound, copied or filled. */
COLLAGE_API collage_status collage_instance_run(collage_instance* instance);

/* ---- shapes known at run time only (since ABI version 2) ---- */

/* Gives input `index` the shape of `ndim` sizes, in which sizes that the executable knows are as it knows them. If it
 * is another than before, the input is read from memory of the instance, all zeros, until something is bound or copied.
 * `collage_instance_bind_input_tensor` gives the shape along with the tensor. */
COLLAGE_API collage_status collage_instance_set_input_shape(collage_instance* instance, size_t index,
                                                            const int64_t* shape, int32_t ndim);

/* What the last run wrote as output `index`; before the first run it fails where the shape is not known yet. `shape`
 * belongs to the instance, until its next run. Outputs of such shapes are copied or read where they lie, not bound:
 * `collage_instance_get_output` gives the memory of the last run's. */
COLLAGE_API collage_status collage_instance_get_output_info(collage_instance* instance, size_t index,
                                                            collage_tensor_info* info, size_t info_size);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* COLLAGE_RUNTIME_C_API_H_ */
