// SPDX-License-Identifier: Apache-2.0
//
// How fast search spaces are evaluated, walked and sampled. Run it on a quiet
// machine, built with the release preset:
//   build/release/bin/search_space_bench

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rng.h"
#include "benchmark/benchmark.h"
#include "predictor/expression.h"
#include "predictor/search_space.h"

namespace cubicml {
namespace {

std::shared_ptr<const SearchSpace> ParseOrDie(const v1::Study& study) {
  absl::StatusOr<std::shared_ptr<const SearchSpace>> space =
      SearchSpace::Parse(study);
  if (!space.ok()) {
    std::cerr << space.status() << "\n";
    std::abort();
  }
  return *std::move(space);
}

void AddIntegers(const std::string& name, const std::vector<int64_t>& values,
                 v1::Study* study) {
  v1::Parameter* parameter = study->add_parameters();
  parameter->set_name(name);
  for (const int64_t value : values) {
    parameter->mutable_integer()->add_values(value);
  }
}

// The space of arXiv 2409.04585 for ads models: 5 * 3^11 * 10 = 8.9 million.
v1::Study MakeAdsStudy(bool constrained) {
  v1::Study study;
  AddIntegers("batch", {1, 2, 3, 4, 5}, &study);
  v1::Parameter* sharding = study.add_parameters();
  sharding->set_name("sharding");
  sharding->set_repeat(11);
  for (const char* value : {"none", "grad", "full"}) {
    sharding->mutable_category()->add_values()->set_string_value(value);
  }
  AddIntegers("prefetch", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, &study);
  if (constrained) {
    study.add_constraints()->set_expression("vec_count(sharding, 'full') <= 4");
    study.add_constraints()->set_expression("batch * prefetch <= 30");
  }
  return study;
}

v1::Study MakeMegatronStudy() {
  v1::Study study;
  v1::ContextField* gpus = study.add_context();
  gpus->set_name("gpus");
  gpus->set_type(v1::INTEGER);
  AddIntegers("tp", {1, 2, 4, 8}, &study);
  AddIntegers("pp", {1, 2, 4, 8, 16}, &study);
  AddIntegers("dp", {1, 2, 4, 8, 16, 32, 64, 128, 256}, &study);
  AddIntegers("vpp", {1, 2, 4, 8}, &study);
  study.mutable_parameters(3)->set_active_if("pp > 1");
  AddIntegers("micro_batch", {1, 2, 4, 8, 16}, &study);
  AddIntegers("recompute", {0, 1, 2}, &study);
  study.add_constraints()->set_expression("tp * pp * dp = gpus");
  study.add_constraints()->set_expression("2048 % (micro_batch * dp) = 0");
  study.add_constraints()->set_expression("96 % (pp * coalesce(vpp, 1)) = 0");
  return study;
}

v1::Study MakeWideStudy() {
  v1::Study study;
  for (int i = 0; i < 30; ++i) {
    AddIntegers(absl::StrCat("x", i), {1, 2, 3, 4, 5}, &study);
  }
  study.add_constraints()->set_expression("x0 * x15 * x29 <> 6");
  study.add_constraints()->set_expression("x3 <= x28");
  study.add_constraints()->set_expression("(x1 + x2) % 2 = 0");
  return study;
}

v1::Study MakeTableStudy(int rows, int columns) {
  v1::Study study;
  v1::TableConstraint* table = study.add_constraints()->mutable_table();
  for (int c = 0; c < columns; ++c) {
    const std::string name = absl::StrCat("c", c);
    std::vector<int64_t> values;
    for (int64_t v = 0; v < 20; ++v) values.push_back(v);
    AddIntegers(name, values, &study);
    table->add_columns(name);
  }
  Rng rng(1);
  for (int r = 0; r < rows; ++r) {
    v1::TableConstraint::Row* row = table->add_rows();
    for (int c = 0; c < columns; ++c) {
      const uint64_t value = r == 0 ? 0 : rng.Below(20);
      row->add_values()->set_int64_value(static_cast<int64_t>(value));
    }
  }
  return study;
}

Context MakeContext(const SearchSpace& space) {
  ValueMap values;
  if (!space.context_fields().empty()) values["gpus"].set_int64_value(512);
  return *space.ParseContext(values);
}

void BM_EvaluateProduct(benchmark::State& state) {
  absl::StatusOr<ExpressionParser> parser = ExpressionParser::Create();
  const std::vector<std::string> names = {"tp", "pp", "dp", "gpus"};
  const Expression expression = *parser->Parse("tp * pp * dp = gpus", names);
  ExpressionEvaluator evaluator({&expression});
  std::vector<SqlValue> values(4, SqlValue::Integer(4));
  for (auto _ : state) {
    benchmark::DoNotOptimize(evaluator.Evaluate(0, values));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EvaluateProduct);

void BM_EvaluateVectorCount(benchmark::State& state) {
  absl::StatusOr<ExpressionParser> parser = ExpressionParser::Create();
  const std::vector<std::string> names = {"sharding"};
  const Expression expression =
      *parser->Parse("vec_count(sharding, 'full') <= 4", names);
  ExpressionEvaluator evaluator({&expression});
  const std::vector<SqlValue> values = {
      SqlValue::Text(R"(["full","none","full","none","full","none",)"
                     R"("full","none","full","none","full"])")};
  for (auto _ : state) {
    benchmark::DoNotOptimize(evaluator.Evaluate(0, values));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EvaluateVectorCount);

void Enumerate(const v1::Study& study, benchmark::State* state) {
  const auto space = ParseOrDie(study);
  const Context context = MakeContext(*space);
  int64_t points = 0;
  for (auto _ : *state) {
    space->Enumerate(context, space->Free(), int64_t{1} << 40,
                     [&](const Point& point) {
                       benchmark::DoNotOptimize(point.data());
                       ++points;
                       return true;
                     });
  }
  state->SetItemsProcessed(points);
}

void BM_EnumerateAds(benchmark::State& state) {
  Enumerate(MakeAdsStudy(state.range(0) != 0), &state);
}
BENCHMARK(BM_EnumerateAds)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_EnumerateMegatron(benchmark::State& state) {
  Enumerate(MakeMegatronStudy(), &state);
}
BENCHMARK(BM_EnumerateMegatron)->Unit(benchmark::kMillisecond);

void BM_EnumerateTable(benchmark::State& state) {
  Enumerate(MakeTableStudy(static_cast<int>(state.range(0)), 10), &state);
}
BENCHMARK(BM_EnumerateTable)
    ->Arg(18000)
    ->Arg(100000)
    ->Unit(benchmark::kMillisecond);

void BM_ParseTable(benchmark::State& state) {
  const v1::Study study = MakeTableStudy(static_cast<int>(state.range(0)), 10);
  for (auto _ : state) benchmark::DoNotOptimize(ParseOrDie(study));
}
BENCHMARK(BM_ParseTable)
    ->Arg(18000)
    ->Arg(100000)
    ->Unit(benchmark::kMillisecond);

v1::Study MakeStudy(int64_t which) {
  switch (which) {
    case 0:
      return MakeAdsStudy(true);
    case 1:
      return MakeWideStudy();
    case 2:
      return MakeMegatronStudy();
    default:
      return MakeTableStudy(100000, 10);
  }
}

// 0: ads, 1: 30 knobs, 2: Megatron, 3: a table.
void BM_Sample(benchmark::State& state) {
  const auto space = ParseOrDie(MakeStudy(state.range(0)));
  const Context context = MakeContext(*space);
  Rng rng(1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        space->Sample(context, space->Free(), 1000000, &rng));
  }
}
BENCHMARK(BM_Sample)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);

// Of a context that was not seen before.
void BM_FirstSample(benchmark::State& state) {
  const v1::Study study = MakeStudy(state.range(0));
  Rng rng(1);
  for (auto _ : state) {
    state.PauseTiming();
    const auto space = ParseOrDie(study);
    const Context context = MakeContext(*space);
    state.ResumeTiming();
    benchmark::DoNotOptimize(
        space->Sample(context, space->Free(), 1000000, &rng));
  }
}
BENCHMARK(BM_FirstSample)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

void BM_Neighbours(benchmark::State& state) {
  const auto space = ParseOrDie(MakeStudy(state.range(0)));
  const Context context = MakeContext(*space);
  Rng rng(1);
  const std::optional<Point> point =
      space->Sample(context, space->Free(), 1000000, &rng);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        space->Neighbours(*point, context, space->Free(), 100, &rng));
  }
}
BENCHMARK(BM_Neighbours)->DenseRange(0, 3)->Unit(benchmark::kMicrosecond);

void BM_CheckValid(benchmark::State& state) {
  const auto space = ParseOrDie(MakeStudy(state.range(0)));
  const Context context = MakeContext(*space);
  const FixedKnobs free = space->Free();
  Rng rng(1);
  const std::optional<Point> point =
      space->Sample(context, free, 1000000, &rng);
  for (auto _ : state) {
    benchmark::DoNotOptimize(space->CheckValid(*point, context, free));
  }
}
BENCHMARK(BM_CheckValid)->DenseRange(0, 3);

void BM_ParseStudy(benchmark::State& state) {
  const v1::Study study = MakeStudy(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(ParseOrDie(study));
}
BENCHMARK(BM_ParseStudy)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace cubicml

BENCHMARK_MAIN();
