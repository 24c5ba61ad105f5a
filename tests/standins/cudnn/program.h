// program.h: graphs of descriptors as programs, and programs as the text of a plan.
#pragma once

#include <string>
#include <vector>

#include "descriptor.h"
#include "evaluation.h"

namespace standin::cudnn {

/// An engine as the heuristic ranks it.
struct Engine {
  int number = 0;
  std::vector<int> notes;  ///< cudnnBackendNumericalNote_t
  int64_t workspace = 0;
  bool has_plan = true;
};

/// Engines for a graph in the order of heuristic `mode`; maybe none.
std::vector<Engine> EnginesFor(const Descriptor& graph, int mode);
/// The engine of that number.
Engine EngineOf(int number);

/// A plan's work, and the GPUs that it is for.
struct SavedPlan {
  int device_version = 0;
  int engine = 0;
  Program program;
};

/// Throws a Failure where a value that operations hand on has no origin, or an id is used twice.
Program ProgramOf(const Descriptor& graph);
std::string ToText(const SavedPlan& plan);
/// Throws a Failure where the text is none of a plan.
SavedPlan FromText(const std::string& text);

/// The compute capability, times 100, in properties of a device. Throws a Failure where one of the properties is
/// missing.
int DeviceVersion(const std::string& properties);

}  // namespace standin::cudnn
