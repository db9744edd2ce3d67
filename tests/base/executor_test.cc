// SPDX-License-Identifier: Apache-2.0

#include "base/executor.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <string>

#include "base/mutex.h"
#include "gtest/gtest.h"

namespace cubicml {
namespace {

// Opens once; work can wait for it.
class Gate {
 public:
  void Open() {
    MutexLock lock(&mu_);
    open_ = true;
    changed_.NotifyAll();
  }
  void Await() {
    MutexLock lock(&mu_);
    while (!open_) changed_.Wait(&mu_);
  }

 private:
  Mutex mu_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mu_) = false;
};

TEST(InlineExecutorTest, RunsBeforeItReturns) {
  InlineExecutor executor;
  bool ran = false;
  EXPECT_TRUE(executor.TrySchedule([&] { ran = true; }));
  EXPECT_TRUE(ran);
}

TEST(ThreadPoolTest, RunsEverythingItTookBeforeItDies) {
  std::atomic<int> ran = 0;
  {
    ThreadPool pool("test", 4, 10'000);
    for (int i = 0; i < 1000; ++i) {
      EXPECT_TRUE(pool.TrySchedule([&] { ++ran; }));
    }
  }
  EXPECT_EQ(ran, 1000);
}

TEST(ThreadPoolTest, RefusesAtOnceWhenItsQueueIsFull) {
  Gate started;
  Gate gate;
  ThreadPool pool("test", 1, 2);
  ASSERT_TRUE(pool.TrySchedule([&] {
    started.Open();
    gate.Await();
  }));
  started.Await();  // it is out of the queue
  EXPECT_TRUE(pool.TrySchedule([] {}));
  EXPECT_TRUE(pool.TrySchedule([] {}));
  EXPECT_EQ(pool.queue_depth(), 2u);
  EXPECT_FALSE(pool.TrySchedule([] {}));
  gate.Open();
}

TEST(ThreadPoolTest, WorkOfOneThreadRunsInOrder) {
  std::vector<int> order;
  {
    ThreadPool pool("test", 1, 100);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(pool.TrySchedule([&order, i] { order.push_back(i); }));
    }
  }
  for (int i = 0; i < 50; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(ThreadPoolTest, ThreadsHaveItsNameCutToWhatFits) {
  std::string name;
  {
    ThreadPool pool("a-name-that-is-too-long", 1, 1);
    ASSERT_TRUE(pool.TrySchedule([&] {
      std::array<char, 16> buffer{};
      pthread_getname_np(pthread_self(), buffer.data(), buffer.size());
      name = buffer.data();
    }));
  }
  EXPECT_EQ(name, "a-name-that-is-");
}

}  // namespace
}  // namespace cubicml
