// SPDX-License-Identifier: Apache-2.0

#include "base/snapshot.h"

#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace cubicml {
namespace {

TEST(SnapshotTest, IsNullUntilSet) {
  Snapshot<int> snapshot;
  EXPECT_EQ(snapshot.Get(), nullptr);
  snapshot.Set(std::make_shared<const int>(3));
  ASSERT_NE(snapshot.Get(), nullptr);
  EXPECT_EQ(*snapshot.Get(), 3);
}

TEST(SnapshotTest, ReadersKeepWhatTheyGotAlive) {
  Snapshot<int> snapshot;
  snapshot.Set(std::make_shared<const int>(1));
  const std::shared_ptr<const int> kept = snapshot.Get();
  const std::weak_ptr<const int> watched = kept;
  snapshot.Set(std::make_shared<const int>(2));
  EXPECT_EQ(*kept, 1);
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(*snapshot.Get(), 2);
}

TEST(SnapshotTest, ReadersNeverSeeAHalfWrittenValue) {
  struct Pair {
    int a;
    int b;
  };
  Snapshot<Pair> snapshot;
  snapshot.Set(std::make_shared<const Pair>(Pair{0, 0}));
  std::vector<std::thread> readers;
  readers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      for (int j = 0; j < 2000; ++j) {
        const auto value = snapshot.Get();
        EXPECT_EQ(value->a, value->b);
      }
    });
  }
  for (int j = 0; j < 2000; ++j) {
    snapshot.Set(std::make_shared<const Pair>(Pair{j, j}));
  }
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace cubicml
