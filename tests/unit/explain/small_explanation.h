// small_explanation.h: an explanation of four calls in two partitions, for tests.
#pragma once

#include "explain/explanation.h"

namespace collage::testing_explanations {

inline std::vector<ExplainedPartition> SmallPartitions() {
  ExplainedPartition first{.candidate = 0, .operators = "nn.conv2d+nn.relu", .first_node = "conv_1", .nodes = {1, 2}};
  first.kernel = 0;
  first.seconds = 2e-5;
  first.share = 2.0 / 3;
  ExplainedAlternative native;
  native.toolchain = 0;
  native.candidates = {2};
  native.replaces = {0};
  native.extra_seconds = 1.2e-5;
  native.low_seconds = 1e-5;
  native.high_seconds = 1.4e-5;
  native.own_seconds = 3e-5;
  native.replaced_seconds = 2e-5;
  native.penalty_seconds = 2e-6;
  first.alternatives = {native};
  ExplainedPartition second{
      .candidate = 1, .operators = "nn.max_pool2d+sigmoid", .first_node = "pool_1", .nodes = {3, 4}};
  second.kernel = 1;
  second.seconds = 1e-5;
  second.share = 1.0 / 3;
  ExplainedAlternative other;
  other.toolchain = 2;
  other.candidates = {4};
  other.replaces = {1};
  other.extra_seconds = -2e-6;
  other.low_seconds = -2e-6;
  other.own_seconds = 8e-6;
  other.replaced_seconds = 1e-5;
  other.at_least = true;
  second.alternatives = {other};
  second.refused = {{1, "'nn.max_pool2d': it crashed"}};
  return {first, second};
}

inline nlohmann::json SmallReport() {
  return nlohmann::json::parse(R"({
    "model": "tiny.onnx", "winner": "collage", "p50_seconds": 3.1e-5,
    "certificate": {"gap": 0.02, "dropped": 0},
    "search": {"budget_spent": false},
    "toolchains": [{"name": "native", "available": true, "takes_part": true},
                   {"name": "acme", "available": true, "takes_part": true},
                   {"name": "other", "available": true, "takes_part": true},
                   {"name": "gone", "available": false, "takes_part": false, "reason": "libgone.so is not there"}],
    "verdict": "31.0 us on Test CPU, 2 threads, by acme -fast=1 and native: 1.39 times faster than native alone.",
    "play_off": [{"name": "collage", "single": false, "p50_seconds": 3.1e-5, "spread_seconds": 4e-7, "estimated_seconds": 3e-5,
                  "failure": "", "partitions": {"acme -fast=1": 1, "native": 1}},
                 {"name": "native", "single": true, "p50_seconds": 4.3e-5, "spread_seconds": 4e-7, "estimated_seconds": 4.2e-5,
                  "failure": "", "partitions": {"native": 2}},
                 {"name": "acme", "single": true, "p50_seconds": 0, "estimated_seconds": null, "failure": "it crashed",
                  "partitions": {}}],
    "regions": [], "seconds": {"total": 12.5}})");
}

inline GraphExplanation SmallGraph() {
  GraphExplanation graph;
  graph.name = "tiny.onnx";
  graph.hash = "3f9a";
  graph.winner = "collage";
  graph.nodes = {{.kind = "input", .op = "", .name = "x", .types = {"float32[1, 3, 8, 8]"}},
                 {.kind = "call", .op = "nn.conv2d", .name = "conv_1", .inputs = {0}},
                 {.kind = "call", .op = "nn.relu", .name = "relu_1", .inputs = {1}},
                 {.kind = "call", .op = "nn.max_pool2d", .name = "pool_1", .inputs = {2}},
                 {.kind = "call", .op = "sigmoid", .name = "", .inputs = {3}}};
  graph.results = {4};
  graph.toolchains = {{"native", "native", "1"}, {"acme -fast=1", "acme", "2"}, {"other", "other", "3"}};
  using State = ExplainedCost::State;
  graph.costs = {{.state = State::kMeasured, .seconds = 2e-5, .p50 = 2e-5, .half_width = 1e-7, .samples = 40},
                 {.state = State::kMeasured, .seconds = 1e-5, .p50 = 1e-5, .samples = 40},
                 {.state = State::kMeasured,
                  .seconds = 3e-5,
                  .samples = 9,
                  .schedule = "rows=2",
                  .trials = {{"rows=3", 4e-5, ""}, {.schedule = "rows=9", .reason = "it is wrong"}}},
                 {.state = State::kFailed, .reason = "it crashed"},
                 {.state = State::kBound, .seconds = 8e-6}};
  graph.rates = {1e11, 5e11, 1e11, 4e10};
  graph.candidates = {
      {.toolchain = 1, .rule = "acme.conv", .nodes = {1, 2}, .inputs = {"plain"}, .outputs = {"plain"}, .cost = 0},
      {.toolchain = 0, .rule = "fuse", .nodes = {3, 4}, .inputs = {"plain"}, .outputs = {"plain"}, .cost = 1},
      {.toolchain = 0, .rule = "fuse", .nodes = {1, 2}, .inputs = {"plain"}, .outputs = {"plain"}, .cost = 2},
      {.toolchain = 1, .rule = "acme.pool", .nodes = {3, 4}, .inputs = {"plain"}, .outputs = {"plain"}, .cost = 3},
      {.toolchain = 2, .rule = "pool", .nodes = {3, 4}, .inputs = {"plain"}, .outputs = {"plain"}, .cost = 4}};
  graph.partitions = SmallPartitions();
  graph.best_mix = true;
  graph.gaps = {{1, "failed", "it crashed", {3, 4}}};
  return graph;
}

/// conv and relu by acme, pool and sigmoid by native: acme cannot run the latter two, native would take the former for
/// 12 us more, and other's way for the pool was never measured.
inline Explanation Small() {
  Explanation explanation;
  explanation.collage = "1.2.3";
  explanation.settings = nlohmann::json::object();
  explanation.machine = {"Test CPU", "x86-64", "x86-64-test", 2, 4, 1 << 20, 1 << 24};
  explanation.model = "tiny.onnx";
  explanation.report = SmallReport();
  explanation.memory = {40960, 8000, 12000, 65536};
  explanation.graphs = {SmallGraph()};
  return explanation;
}

}  // namespace collage::testing_explanations
