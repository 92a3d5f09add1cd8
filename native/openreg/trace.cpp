#include "trace.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

namespace c10::openreg {
namespace {

enum Output { kPrint = 1, kRecord = 2 };

int initial_output() {
  const char* text = std::getenv("OPENREG_TRACE_HOOKS");
  return text != nullptr && *text != '\0' && std::strcmp(text, "0") != 0 ? kPrint : 0;
}

std::atomic<int> output{initial_output()};
std::mutex mutex;
thread_local int depth = 0;

std::vector<Step>& steps() {
  static auto* const instance = new std::vector<Step>;
  return *instance;
}

}  // namespace

void record_steps(bool on) {
  if (on) output.fetch_or(kRecord);
  else output.fetch_and(~kRecord);
}

std::vector<Step> take_steps() {
  const std::lock_guard<std::mutex> lock(mutex);
  return std::exchange(steps(), {});
}

TracePoint::TracePoint(Level level, int device, const char* name, const char* file, int line) : active_(output != 0) {
  if (!active_) return;
  const int out = output;
  if (out & kPrint) {
    const char* slash = std::strrchr(file, '/');
    std::fprintf(stderr, "[openreg level %d] %*s%s", static_cast<int>(level), 2 * depth, "", name);
    if (device != kNoDevice) std::fprintf(stderr, "(%d)", device);
    std::fprintf(stderr, "  %s:%d\n", slash ? slash + 1 : file, line);
  }
  if (out & kRecord) {
    const std::lock_guard<std::mutex> lock(mutex);
    steps().push_back({level, depth, file, line, name, device});
  }
  depth++;
}

TracePoint::~TracePoint() {
  if (active_) depth--;
}

}  // namespace c10::openreg
