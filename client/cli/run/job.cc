// SPDX-License-Identifier: Apache-2.0

#include "client/cli/run/job.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <set>
#include <string>

#include "base/status_macros.h"
#include "client/cli/run/child_process.h"

namespace cubicml {
namespace {

// How often timeouts and the service's wish to stop are looked at.
constexpr absl::Duration kTick = absl::Milliseconds(100);
// What a job leaves running may end by itself within this time.
constexpr absl::Duration kLeftoverPatience = absl::Seconds(2);
// A process that left the group may hold the pipes open for ever.
constexpr absl::Duration kLastOutput = absl::Seconds(1);

// One stream on its way from the job to where it belongs. It never blocks, so
// that a reader that does not read stops the job's output and nothing else.
class Passage {
 public:
  Passage(int from, int to) : from_(from), to_(to) {}

  bool open() const { return !ended_ || !pending_.empty(); }
  bool broken() const { return broken_; }

  pollfd PollEntry() const {
    if (!pending_.empty()) return {to_, POLLOUT, 0};
    if (!ended_) return {from_, POLLIN, 0};
    return {-1, 0, 0};
  }

  // Moves what can be moved. Returns what was read.
  absl::string_view Move(const pollfd& ready) {
    if (ready.fd < 0 || ready.revents == 0) return "";
    if (!pending_.empty()) {
      Write();
      return "";
    }
    const ssize_t count = read(from_, buffer_, sizeof(buffer_));
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return "";
    if (count <= 0) {
      ended_ = true;
      return "";
    }
    pending_ = absl::string_view(buffer_, static_cast<size_t>(count));
    return pending_;
  }

  // What is in the pipe now, which is not passed on any more. Does not wait.
  std::string TakeRest() {
    int size = 0;
    if (ended_ || ioctl(from_, FIONREAD, &size) != 0 || size <= 0) return "";
    std::string rest(static_cast<size_t>(size), '\0');
    const ssize_t count = read(from_, rest.data(), rest.size());
    rest.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    return rest;
  }

 private:
  void Write() {
    // A pipe that is ready takes this much without blocking.
    const ssize_t count = write(to_, pending_.data(),
                                std::min<size_t>(pending_.size(), PIPE_BUF));
    if (count >= 0) {
      pending_.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR && errno != EAGAIN) {
      // Nobody reads any more: the job shall see that as it would without us.
      pending_ = {};
      ended_ = true;
      broken_ = true;
    }
  }

  const int from_;
  const int to_;
  char buffer_[1 << 16];
  absl::string_view pending_;
  bool ended_ = false;
  bool broken_ = false;
};

// The loop of RunJob(). Not thread-safe.
class JobRun {
 public:
  JobRun(const JobSpec& spec, ChildProcess* child, SignalRelay* signals,
         const Clock* clock)
      : spec_(spec),
        child_(child),
        signals_(signals),
        clock_(clock),
        out_(child->out(), spec.out),
        err_(child->err(), spec.err),
        deadline_(clock->Elapsed() + spec.timeout) {}

  JobEnd Run() {
    while (!Step()) continue;
    // Whoever reads our output may be slow; what was measured must not wait.
    PassOn(false, out_.TakeRest());
    PassOn(true, err_.TakeRest());
    const int status = *child_->Poll();
    end_.by_signal = WIFSIGNALED(status);
    end_.code = end_.by_signal ? WTERMSIG(status) : WEXITSTATUS(status);
    end_.by_sent_signal = sent_.count(end_.ExitCode() - 128) > 0;
    return end_;
  }

 private:
  // Returns true when everything is over.
  bool Step() {
    pollfd entries[] = {{signals_->descriptor(), POLLIN, 0},
                        out_.PollEntry(),
                        err_.PollEntry()};
    poll(entries, 3, static_cast<int>(absl::ToInt64Milliseconds(kTick)));
    PassOn(false, out_.Move(entries[1]));
    PassOn(true, err_.Move(entries[2]));
    if (out_.broken()) child_->CloseOut();
    if (err_.broken()) child_->CloseErr();
    for (const int signal : signals_->Take()) Forward(signal);
    if (!child_->Poll().has_value()) {
      Watch();
      return false;
    }
    return CleanUp();
  }

  void PassOn(bool is_error, absl::string_view chunk) {
    if (chunk.empty()) return;
    last_output_ = clock_->Elapsed();
    if (spec_.on_output) spec_.on_output(is_error, chunk);
  }

  void Forward(int signal) {
    if (SignalRelay::IsStop(signal)) {
      if (end_.interrupted_by != 0) {
        Kill();  // they mean it
        return;
      }
      end_.interrupted_by = signal;
      kill_at_ = clock_->Elapsed() + spec_.grace;
    } else {
      sent_.insert(signal);
    }
    child_->SignalGroup(signal);
  }

  void Stop() {
    child_->SignalGroup(SIGTERM);
    kill_at_ = clock_->Elapsed() + spec_.grace;
  }

  void Kill() {
    child_->SignalGroup(SIGKILL);
    end_.killed = true;
  }

  // While the job runs: does something end it?
  void Watch() {
    const absl::Duration now = clock_->Elapsed();
    if (kill_at_ != absl::InfiniteDuration()) {
      if (now < kill_at_) return;
      Kill();
      kill_at_ = now + spec_.grace;
    } else if (now >= deadline_) {
      end_.timed_out = true;
      Stop();
    } else if (spec_.should_stop && spec_.should_stop()) {
      end_.told_to_stop = true;
      Stop();
    }
  }

  // After the job: its last output, and whom it left behind.
  bool CleanUp() {
    const absl::Duration now = clock_->Elapsed();
    if (!ended_at_.has_value()) ended_at_ = now;
    if (child_->HasGroup()) return EndLeftovers(now);
    const bool quiet = now >= std::max(*ended_at_, last_output_) + kLastOutput;
    return quiet || (!out_.open() && !err_.open());
  }

  // Returns true when those that are left cannot be ended: zombies that nobody
  // reaps, or processes that the kernel does not let go.
  bool EndLeftovers(absl::Duration now) {
    if (!leftover_stop_at_.has_value()) {
      const bool hurry = kill_at_ != absl::InfiniteDuration();
      leftover_stop_at_ =
          *ended_at_ + (hurry ? absl::ZeroDuration() : kLeftoverPatience);
    }
    if (!leftover_told_ && now >= *leftover_stop_at_) {
      child_->SignalGroup(SIGTERM);
      leftover_told_ = true;
    } else if (leftover_told_ && now >= *leftover_stop_at_ + spec_.grace) {
      child_->SignalGroup(SIGKILL);
    }
    return now >= *leftover_stop_at_ + 2 * spec_.grace;
  }

  const JobSpec& spec_;
  ChildProcess* const child_;
  SignalRelay* const signals_;
  const Clock* const clock_;
  Passage out_;
  Passage err_;
  const absl::Duration deadline_;
  absl::Duration kill_at_ = absl::InfiniteDuration();
  absl::Duration last_output_ = absl::ZeroDuration();
  std::optional<absl::Duration> ended_at_;
  std::optional<absl::Duration> leftover_stop_at_;
  bool leftover_told_ = false;
  std::set<int> sent_;  // signals that do not mean to stop
  JobEnd end_;
};

}  // namespace

absl::StatusOr<JobEnd> RunJob(const JobSpec& spec, SignalRelay* signals,
                              const Clock* clock) {
  CUBICML_ASSIGN_OR_RETURN(ChildProcess child,
                           ChildProcess::Start(spec.command, spec.environment));
  return JobRun(spec, &child, signals, clock).Run();
}

}  // namespace cubicml
