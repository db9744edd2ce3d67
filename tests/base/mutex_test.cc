// SPDX-License-Identifier: Apache-2.0

#include "base/mutex.h"

#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace cubicml {
namespace {

struct Counter {
  Mutex mu;
  CondVar changed;
  int value ABSL_GUARDED_BY(mu) = 0;
};

TEST(MutexTest, IncrementsOfManyThreadsAreAllKept) {
  Counter counter;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) {
        MutexLock lock(&counter.mu);
        ++counter.value;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(&counter.mu);
  EXPECT_EQ(counter.value, 8000);
}

TEST(CondVarTest, TwoThreadsTakeTurns) {
  Counter counter;
  const auto play = [&counter](int parity) {
    for (int i = 0; i < 100; ++i) {
      MutexLock lock(&counter.mu);
      while (counter.value % 2 != parity) counter.changed.Wait(&counter.mu);
      ++counter.value;
      counter.changed.NotifyAll();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  MutexLock lock(&counter.mu);
  EXPECT_EQ(counter.value, 200);
}

TEST(CondVarTest, WaitForEndsWithTheTimeoutAndHoldsTheLock) {
  Counter counter;
  MutexLock lock(&counter.mu);
  bool notified = true;
  // May wake without cause, but not for ever.
  while (notified) {
    notified = counter.changed.WaitFor(&counter.mu, absl::Microseconds(1));
  }
  ++counter.value;
  EXPECT_EQ(counter.value, 1);
}

TEST(CondVarTest, WaitForSeesANotification) {
  Counter counter;
  std::thread other([&counter] {
    MutexLock lock(&counter.mu);
    counter.value = 1;
    counter.changed.NotifyOne();
  });
  {
    MutexLock lock(&counter.mu);
    while (counter.value == 0) {
      counter.changed.WaitFor(&counter.mu, absl::Minutes(5));
    }
    EXPECT_EQ(counter.value, 1);
  }
  other.join();
}

}  // namespace
}  // namespace cubicml
