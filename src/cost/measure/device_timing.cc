// device_timing.cc: recorded batches between readings of a device's clock.
#include "cost/measure/device_timing.h"

#include <algorithm>
#include <utility>

namespace collage {
namespace {

/// Copied to see how fast the device is.
constexpr size_t kCopiedBytes = size_t{4} << 20;
/// Caches that devices do not tell are smaller than this.
constexpr size_t kUsualCacheBytes = size_t{64} << 20;

/// Copies the first half of `buffer` over the second.
void CopyHalf(const DeviceBuffer& buffer, size_t bytes) {
  auto* begin = static_cast<std::byte*>(buffer.address());
  buffer.device().CopyWithin(begin + bytes, begin, bytes);
}

/// Returns the seconds of a copy within the memory of the device.
double CopySeconds(Memory memory, TimesWork& timer) {
  constexpr int kCopies = 5;
  // This process's; calls are one at a time. Never freed: the device may be gone when the process ends.
  static auto& buffers = *new std::map<Memory, DeviceBuffer>;
  const auto [it, is_new] = buffers.try_emplace(memory);
  if (is_new) it->second = DeviceBuffer(memory, 2 * kCopiedBytes);
  const auto copy = [&buffer = it->second] { CopyHalf(buffer, kCopiedBytes); };
  Samples samples;
  for (int i = 0; i < kCopies; ++i) {
    samples.Add(timer.SecondsOfWork(copy, copy));
  }
  return samples.p50();
}

}  // namespace

std::unique_ptr<DeviceTiming> DeviceTiming::Make(Memory memory, std::function<void()> run, CacheLevel operands) {
  auto* timer = dynamic_cast<TimesWork*>(&GetDevice(memory));
  if (timer == nullptr) return nullptr;
  return std::unique_ptr<DeviceTiming>(new DeviceTiming(memory, *timer, std::move(run), operands));
}

DeviceTiming::DeviceTiming(Memory memory, TimesWork& timer, std::function<void()> run, CacheLevel operands)
    : memory_(memory),
      device_(GetDevice(memory)),
      timer_(timer),
      recorder_(dynamic_cast<RecordsWork*>(&device_)),
      run_(std::move(run)) {
  const size_t cache = timer.CacheBytes() > 0 ? timer.CacheBytes() : kUsualCacheBytes;
  if (operands == CacheLevel::kMemory) evicting_.emplace(memory, 4 * cache);
}

TimingOptions DeviceTiming::ForClock(TimingOptions timing) {
  constexpr double kResolvedSeconds = 100e-6;
  timing.min_batch_seconds = std::max(timing.min_batch_seconds, kResolvedSeconds);
  return timing;
}

double DeviceTiming::Seconds(int num_runs) {
  if (!evicting_) {
    const std::function<void()>& batch = BatchOf(num_runs);
    return timer_.SecondsOfWork(batch,
                                batch);  // the first one keeps the device busy and leaves caches as they are used
  }
  double seconds = 0;
  for (int i = 0; i < num_runs; ++i) seconds += timer_.SecondsOfWork([&] { Evict(); }, BatchOf(1));
  return seconds;
}

void DeviceTiming::Evict() const {
  const size_t cache = timer_.CacheBytes() > 0 ? timer_.CacheBytes() : kUsualCacheBytes;
  CopyHalf(*evicting_, 2 * cache);
}

const std::function<void()>& DeviceTiming::BatchOf(int num_runs) {
  const auto [batch, is_new] = batches_.try_emplace(num_runs);
  if (!is_new) return batch->second;
  const auto one_by_one = [this, num_runs] {
    for (int i = 0; i < num_runs; ++i) run_();
  };
  // A kernel may allocate in its first run, which a recording would not bear.
  run_();
  device_.Synchronize();
  std::unique_ptr<RecordedWork> recorded = recorder_ == nullptr ? nullptr : recorder_->Record(one_by_one);
  RecordedWork* work = (recorded_[num_runs] = std::move(recorded)).get();
  batch->second = work == nullptr ? std::function<void()>(one_by_one) : [work] { work->Run(); };
  return batch->second;
}

DriftWatch& DeviceTiming::watch() {
  static std::map<Memory, DriftWatch> watches;  // this process's; calls are one at a time
  const auto it = watches.find(memory_);
  if (it != watches.end()) return it->second;
  const auto read = [memory = memory_, &timer = timer_] { return CopySeconds(memory, timer) * timer.Slowdown(); };
  return watches.try_emplace(memory_, read).first->second;
}

}  // namespace collage
