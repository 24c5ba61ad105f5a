/* run_model.c: runs an executable from C.
 *
 *     run_model_c MODEL.clg INPUT.raw… > OUTPUTS.raw
 *
 * Reads each input's elements from a file of its own, in the order of the executable, and writes those of all outputs,
 * one behind the other. What they are goes to stderr. An input whose shape is known at run time only, as programs may
 * have them, is written with its shape: 3x224x224=INPUT.raw. */
#include <collage/runtime/c_api.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program, with the exit code of `collage`, when something failed. */
static void check(collage_status status) {
  if (status == COLLAGE_OK) return;
  fprintf(stderr, "%s\n", collage_last_error()->text);
  exit(status);
}

static void describe(const char* what, const collage_tensor_info* info) {
  fprintf(stderr, "%s '%s'", what, info->name);
  for (int32_t axis = 0; axis < info->ndim; ++axis) fprintf(stderr, "%s%ld", axis ? "x" : " ", (long)info->shape[axis]);
  fprintf(stderr, ", %lu bytes\n", (unsigned long)info->size_bytes);
}

static int is_known(const collage_tensor_info* info) {
  for (int32_t axis = 0; axis < info->ndim; ++axis) {
    if (info->shape[axis] < 0) return 0;
  }
  return 1;
}

/* Takes "3x224x224=" off `argument`, the input's shape, and returns what follows. */
static const char* set_shape(collage_instance* run, size_t index, const char* argument) {
  enum { MOST_DIMENSIONS = 16 };
  int64_t shape[MOST_DIMENSIONS];
  int32_t ndim = 0;
  while (*argument != '=' && ndim < MOST_DIMENSIONS) { /* none for a scalar */
    char* end;
    shape[ndim++] = strtol(argument, &end, 10);
    if (end == argument) break;
    argument = *end == 'x' ? end + 1 : end;
  }
  if (*argument != '=') {
    fprintf(stderr, "error: '%s' is not SIZExSIZE…=FILE\n", argument);
    exit(COLLAGE_ERROR_INPUT);
  }
  check(collage_instance_set_input_shape(run, index, shape, ndim));
  return argument + 1;
}

static size_t size_of(const collage_tensor* tensor) {
  size_t size = (size_t)(tensor->dtype.bits + 7) / 8 * tensor->dtype.lanes;
  for (int32_t axis = 0; axis < tensor->ndim; ++axis) size *= (size_t)tensor->shape[axis];
  return size;
}

static void read_input(collage_instance* run, size_t index, const char* path) {
  collage_tensor memory; /* the instance's own: filled, not copied */
  check(collage_instance_get_input(run, index, &memory));
  const size_t size_bytes = size_of(&memory);
  FILE* file = fopen(path, "rb");
  if (file == NULL || fread(memory.data, 1, size_bytes, file) != size_bytes || fgetc(file) != EOF) {
    fprintf(stderr, "%s: error: not a file of %lu bytes\n", path, (unsigned long)size_bytes);
    exit(COLLAGE_ERROR_INPUT);
  }
  fclose(file);
}

int main(int argc, char** argv) {
  collage_executable* model;
  collage_instance* run;
  size_t num_inputs, num_outputs;
  if (argc < 2) {
    fprintf(stderr, "usage: %s MODEL.clg INPUT.raw... > OUTPUTS.raw\n", argv[0]);
    return COLLAGE_ERROR_INPUT;
  }
  check(collage_executable_load(argv[1], &model));
  check(collage_instance_create(model, &run));
  check(collage_executable_num_inputs(model, &num_inputs));
  check(collage_executable_num_outputs(model, &num_outputs));
  if ((size_t)argc != num_inputs + 2) {
    fprintf(stderr, "error: the model has %lu inputs, %d files were given\n", (unsigned long)num_inputs, argc - 2);
    return COLLAGE_ERROR_INPUT;
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    collage_tensor_info info;
    check(collage_executable_get_input(model, i, &info, sizeof info));
    describe("input", &info);
    read_input(run, i, is_known(&info) ? argv[i + 2] : set_shape(run, i, argv[i + 2]));
  }
  check(collage_instance_run(run));
  for (size_t i = 0; i < num_outputs; ++i) {
    collage_tensor_info info;
    collage_tensor result;
    check(collage_instance_get_output_info(run, i, &info, sizeof info)); /* as this run wrote it */
    describe("output", &info);
    check(collage_instance_get_output(run, i, &result));
    fwrite(result.data, 1, (size_t)info.size_bytes, stdout);
  }
  collage_instance_release(run);
  collage_executable_release(model);
  return 0;
}
