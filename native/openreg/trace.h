// A trace of the chain from the bridge down to the device: which function ran, at which level, inside which other one.
//
// OPENREG_TRACE_HOOKS=1 prints it; `record_steps` keeps it for the tour and the tests. While both are off a trace point costs one
// load.
#pragma once

#include <string>
#include <vector>

namespace c10::openreg {

// Levels of the chain that have native code of our own (4 is libtorch's).
enum Level { kBridge = 3, kHook = 5, kDevice = 6 };

struct Step {
  int level;
  int depth;  // how many traced functions of this thread are around it
  std::string file;
  int line;
  std::string name;
  int device;  // the index it was called with; kNoDevice when it takes none
};

constexpr int kNoDevice = -2;

void record_steps(bool on);
std::vector<Step> take_steps();

class TracePoint {
 public:
  explicit TracePoint(Level level, int device = kNoDevice, const char* name = __builtin_FUNCTION(),
                      const char* file = __builtin_FILE(), int line = __builtin_LINE());
  ~TracePoint();
  TracePoint(const TracePoint&) = delete;
  TracePoint& operator=(const TracePoint&) = delete;

 private:
  bool active_;
};

}  // namespace c10::openreg
