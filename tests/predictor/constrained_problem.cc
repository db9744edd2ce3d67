// SPDX-License-Identifier: Apache-2.0

#include "tests/predictor/constrained_problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <memory>
#include <stop_token>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "base/rng.h"
#include "predictor/kernel_fit.h"
#include "predictor/kernel_regressor.h"
#include "predictor/kernel_trainer.h"
#include "predictor/single_kind_trainer.h"
#include "predictor/surrogate_model.h"
#include "tests/predictor/searcher_fixture.h"

namespace cubicml {
namespace {

enum KnobIndex : size_t {
  kBatch,
  kRate,
  kOptimizer,
  kThreads,
  kLayout,
  kType,
  kMicro,
  kFused,
  kKnobs,
};

// 20,736 points: few enough to score them all.
std::string SpaceText() {
  return R"(
parameters { name: 'batch' integer { values: [64, 128, 256, 512, 1024, 2048]
             scale: SCALE_LOG } default_value { int64_value: 128 } }
parameters { name: 'rate' number { min: -3 max: 0 step: 0.5 }
             default_value { double_value: -1.5 } }
)" + CategoryText("optimizer", 2) +
         "parameters { name: 'threads' integer { min: 1 max: 4 } }\n" +
         CategoryText("layout", 3) + CategoryText("type", 3) +
         "parameters { name: 'micro' integer { values: [1, 2, 4, 8] "
         "scale: SCALE_LOG } }\n" +
         CategoryText("fused", 2);
}

// Where the value of a knob is among its levels, in [0, 1].
double Position(const Knob& knob, double value) {
  const auto at =
      std::lower_bound(knob.levels.begin(), knob.levels.end(), value);
  return static_cast<double>(at - knob.levels.begin()) /
         static_cast<double>(knob.levels.size() - 1);
}

// The logarithm of the speed: each knob has its part, neighbouring ones
// interact, and the knobs that break bounds are worth the most.
class Speed {
 public:
  Speed(const std::vector<Knob>& knobs, Rng* rng) : knobs_(knobs) {
    for (const Knob& knob : knobs) {
      std::vector<double> worth;
      const double peak = rng->Uniform();
      const double size = 0.2 + 0.4 * rng->Uniform();
      for (const double level : knob.levels) {
        const double at = Position(knob, level);
        worth.push_back(knob.kind == KnobKind::kCategory
                            ? size * rng->Uniform()
                            : -size * (at - peak) * (at - peak));
      }
      worth_.push_back(std::move(worth));
      pairs_.push_back(0.3 * rng->Normal());
    }
  }

  double Of(const Point& point) const {
    double sum = 0.0;
    double before = 0.0;
    for (size_t k = 0; k < knobs_.size(); ++k) {
      const double at = Position(knobs_[k], point[k]);
      const auto level = static_cast<size_t>(
          std::lround(at * static_cast<double>(knobs_[k].levels.size() - 1)));
      sum += worth_[k][level] + pairs_[k] * (at - 0.5) * (before - 0.5);
      before = at;
    }
    return sum + 0.9 * Position(knobs_[kBatch], point[kBatch]) +
           0.4 * Position(knobs_[kMicro], point[kMicro]) + 0.25 * point[kType];
  }

 private:
  const std::vector<Knob> knobs_;
  std::vector<std::vector<double>> worth_;
  std::vector<double> pairs_;
};

// What the losses and the memory are made of.
struct Shape {
  ConstraintKind kind;
  double drift = 0.0;  // of the best rate with the batch
  std::vector<Knob> knobs;

  double Loss(const Point& point) const {
    const double batch = Position(knobs[kBatch], point[kBatch]);
    const double rate = Position(knobs[kRate], point[kRate]);
    constexpr double kBase = 0.46;
    if (kind == ConstraintKind::kCategory) {
      constexpr std::array<double, 3> kWorse = {0.0, 0.02, 0.05};
      return kBase * (1.0 + kWorse[static_cast<size_t>(point[kType])]);
    }
    const double off = rate - 0.5 - drift * (batch - 0.2);
    double loss = kBase * (1.0 + 0.02 * batch * batch + 0.05 * off * off);
    if (kind == ConstraintKind::kTight) loss += 0.004 * point[kOptimizer];
    if (kind == ConstraintKind::kDiverging && off > 0.2) {
      loss *= 1.0 + std::min(0.5, 2.0 * (off - 0.2));
    }
    return loss;
  }

  double Memory(const Point& point) const {
    return 3.0 + 0.03 * point[kBatch] * point[kMicro];  // GiB
  }
};

bool Keeps(const std::vector<double>& metrics,
           const std::vector<MetricBound>& bounds) {
  return std::all_of(bounds.begin(), bounds.end(), [&](const MetricBound& b) {
    return metrics[b.metric] >= b.min && metrics[b.metric] <= b.max;
  });
}

void AddBounds(ConstraintKind kind, const std::vector<Point>& points,
               ConstrainedProblem* problem) {
  MetricBound bound;
  bound.metric = 1;
  const double loss = problem->measure(problem->baseline)[1];
  switch (kind) {
    case ConstraintKind::kMemory:
      break;
    case ConstraintKind::kTight: {
      std::vector<double> losses;
      for (const Point& point : points) {
        losses.push_back(problem->measure(point)[1]);
      }
      std::sort(losses.begin(), losses.end());
      bound.max = losses[losses.size() / 10];
      break;
    }
    case ConstraintKind::kNoisy:
      bound.max = 1.01 * loss;
      break;
    default:
      bound.max = 1.002 * loss;
  }
  if (kind != ConstraintKind::kMemory) problem->bounds.push_back(bound);
  if (kind == ConstraintKind::kMemory || kind == ConstraintKind::kTwo) {
    bound.metric = problem->metrics.size() - 1;
    bound.max = 76.0;
    problem->bounds.push_back(bound);
  }
}

DatasetRow MakeRow(const std::vector<double>& measured) {
  DatasetRow row;
  row.feasible = true;  // it ran, whatever its metrics
  row.metrics = measured;
  return row;
}

}  // namespace

const char* NameOf(ConstraintKind kind) {
  switch (kind) {
    case ConstraintKind::kSmooth:
      return "smooth";
    case ConstraintKind::kCategory:
      return "category";
    case ConstraintKind::kMemory:
      return "memory";
    case ConstraintKind::kNoisy:
      return "noisy";
    case ConstraintKind::kTight:
      return "tight";
    case ConstraintKind::kTwo:
      return "two";
    case ConstraintKind::kDiverging:
      return "diverging";
  }
  return "";
}

ConstrainedProblem MakeConstrainedProblem(ConstraintKind kind, uint64_t seed) {
  ConstrainedProblem problem;
  problem.space = *SearchSpace::Parse(StudyFromText(SpaceText()));
  problem.featurizer = std::make_unique<Featurizer>(problem.space);
  problem.context = *problem.space->ParseContext({});
  const std::vector<Knob>& knobs = problem.space->knobs();
  CUBICML_CHECK(knobs.size() == kKnobs);
  Rng rng = Rng::Derive(seed, {0});
  const Speed speed(knobs, &rng);
  const Shape shape{kind, 0.3 * rng.Uniform(), knobs};
  problem.metrics = {{"qps", true, true}};
  const bool has_loss = kind != ConstraintKind::kMemory;
  const bool has_memory = !has_loss || kind == ConstraintKind::kTwo;
  if (has_loss) problem.metrics.push_back({"loss", false, true});
  if (has_memory) problem.metrics.push_back({"memory", false, true});
  problem.measure = [speed, shape, has_loss, has_memory](const Point& point) {
    std::vector<double> metrics = {1000.0 * std::exp(speed.Of(point))};
    if (has_loss) metrics.push_back(shape.Loss(point));
    if (has_memory) metrics.push_back(shape.Memory(point));
    return metrics;
  };
  problem.noise.assign(problem.metrics.size(), 0.0);
  problem.noise[0] = 0.01;
  if (kind == ConstraintKind::kNoisy) problem.noise[1] = 0.005;

  const std::vector<Point> points = *problem.space->ValidPoints(
      problem.context, problem.space->Free(), kMaxListedPoints);
  problem.baseline =
      *problem.space->Baseline(problem.context, problem.space->Free());
  AddBounds(kind, points, &problem);
  while (!Keeps(problem.measure(problem.baseline), problem.bounds)) {
    problem.baseline = points[rng.Below(points.size())];
  }
  for (const Point& point : points) {
    const std::vector<double> metrics = problem.measure(point);
    if (!Keeps(metrics, problem.bounds)) continue;
    problem.best = std::max(problem.best, metrics[0]);
    problem.feasible_share += 1.0 / static_cast<double>(points.size());
  }
  return problem;
}

namespace {

// As in the service.
constexpr size_t kMinTrainingRows = 3;

// One search. Not thread-safe.
class Loop {
 public:
  Loop(const ConstrainedProblem& problem, const Trainer* trainer,
       const Searcher& searcher, uint64_t seed, int jobs)
      : problem_(problem),
        trainer_(trainer),
        searcher_(searcher),
        seed_(seed),
        jobs_(static_cast<size_t>(jobs)),
        noise_(Rng::Derive(seed, {1})) {
    dataset_.metrics = problem.metrics;
    dataset_.bounds = problem.bounds;
    dataset_.features.columns = problem.featurizer->columns();
    search_.space = problem.space;
    search_.featurizer = problem.featurizer.get();
    search_.context = problem.context;
    search_.fixed = problem.space->Free();
    search_.bounds = problem.bounds;
  }

  std::vector<ConstrainedTrial> Run(int count) {
    ConstrainedTrial baseline;
    baseline.point = problem_.baseline;
    Start(std::move(baseline));
    while (started_ < static_cast<size_t>(count)) {
      if (running_.size() == jobs_) Finish();
      Start(Choose());
    }
    while (!running_.empty()) Finish();
    return std::move(trials_);
  }

 private:
  ConstrainedTrial Choose() {
    Rng rng = Rng::Derive(seed_, {2, started_});
    if (trainer_ == nullptr) return Search(*NewRandomSearcher(), rng);
    if (started_ < problem_.space->knobs().size() ||
        dataset_.rows.size() < kMinTrainingRows) {
      return Search(*NewSpaceFillingSearcher(), rng);
    }
    const auto model = trainer_->Train(dataset_, Rng(rng()), {});
    CUBICML_CHECK(model.ok());
    search_.predictor = model->get();
    ConstrainedTrial trial = Search(searcher_, rng);
    trial.modelled = true;
    const auto forecast = (*model)->Predict(
        problem_.featurizer->Featurize({{trial.point}}, problem_.context));
    CUBICML_CHECK(forecast.ok());
    trial.forecasts = forecast->front().metrics;
    trial.chance = ProbabilityWithin(trial.forecasts, problem_.bounds);
    search_.predictor = nullptr;
    return trial;
  }

  ConstrainedTrial Search(const Searcher& searcher, Rng rng) {
    auto found = searcher.Search(search_, 1, Rng(rng()));
    CUBICML_CHECK(found.ok() && !found->empty());
    ConstrainedTrial trial;
    trial.point = std::move(found->front().point);
    return trial;
  }

  void Start(ConstrainedTrial trial) {
    ++started_;
    search_.taken.insert(problem_.space->PointKey(trial.point));
    search_.pending.push_back(trial.point);
    running_.push_back(std::move(trial));
  }

  void Finish() {
    ConstrainedTrial trial = std::move(running_.front());
    running_.pop_front();
    search_.pending.erase(search_.pending.begin());
    trial.measured = problem_.measure(trial.point);
    const double worth = trial.measured[0];
    const bool truly = Keeps(trial.measured, problem_.bounds);
    for (size_t m = 0; m < trial.measured.size(); ++m) {
      trial.measured[m] *= std::exp(problem_.noise[m] * noise_.Normal());
    }
    trial.kept = Keeps(trial.measured, problem_.bounds);
    // By what it is, not by what it was measured as: luck is not speed.
    if (truly) {
      regret_ = std::min(regret_, 100.0 * (1.0 - worth / problem_.best));
    }
    trial.regret = regret_;
    problem_.featurizer->Append(trial.point, problem_.context,
                                &dataset_.features);
    dataset_.rows.push_back(MakeRow(trial.measured));
    search_.observations.push_back(
        {trial.point, trial.kept, trial.measured[0]});
    trials_.push_back(std::move(trial));
  }

  const ConstrainedProblem& problem_;
  const Trainer* const trainer_;
  const Searcher& searcher_;
  const uint64_t seed_;
  const size_t jobs_;
  Rng noise_;
  Dataset dataset_;
  SearchProblem search_;
  double regret_ = 100.0;
  size_t started_ = 0;
  std::deque<ConstrainedTrial> running_;
  std::vector<ConstrainedTrial> trials_;  // that have ended
};

}  // namespace

std::unique_ptr<Trainer> NewDenseTrainer() {
  HeadOptions heads = KernelHeads();
  heads.metrics = {FitKernel};
  return NewSingleKindTrainer(
      {"gaussian-process",
       [](const RegressionProblem& regression, Rng,
          const std::stop_token& stop) { return FitKernel(regression, stop); },
       kMaxKernelRows, ScoreScale::kShareOfBest},
      std::move(heads));
}

std::vector<ConstrainedTrial> SearchConstrained(
    const ConstrainedProblem& problem, const Trainer* trainer,
    const Searcher& searcher, uint64_t seed, int trials, int jobs) {
  return Loop(problem, trainer, searcher, seed, jobs).Run(trials);
}

}  // namespace cubicml
