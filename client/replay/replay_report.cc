// SPDX-License-Identifier: Apache-2.0

#include "client/replay/replay_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/csv.h"

namespace cubicml {
namespace {

constexpr char kOverall[] = "overall";

double PercentAfter(const std::vector<ReplayedTrial>& trials, int checkpoint) {
  if (trials.empty()) return 100.0;
  const size_t count = std::min(trials.size(), static_cast<size_t>(checkpoint));
  return trials[count - 1].percent_below_best;
}

// Adds up the runs of one table and searcher.
class Sum {
 public:
  Sum(std::string table, std::string searcher, size_t checkpoints) {
    summary_.table = std::move(table);
    summary_.searcher = std::move(searcher);
    summary_.mean.assign(checkpoints, 0.0);
    summary_.worst.assign(checkpoints, 0.0);
  }

  bool Is(absl::string_view table, absl::string_view searcher) const {
    return summary_.table == table && summary_.searcher == searcher;
  }

  void Add(const ReplayResult& result, const std::vector<int>& checkpoints) {
    for (size_t i = 0; i < checkpoints.size(); ++i) {
      const double percent = PercentAfter(result.trials, checkpoints[i]);
      summary_.mean[i] += percent;
      summary_.worst[i] = std::max(summary_.worst[i], percent);
    }
    for (const ReplayedTrial& trial : result.trials) failed_ += !trial.ok;
    trials_ += result.trials.size();
    problems_.insert(result.problem);
    ++summary_.runs;
  }

  ReplaySummary Finish() {
    for (double& mean : summary_.mean) {
      mean /= static_cast<double>(summary_.runs);
    }
    summary_.problems = problems_.size();
    summary_.failed_share = static_cast<double>(failed_) /
                            static_cast<double>(std::max<size_t>(1, trials_));
    return summary_;
  }

 private:
  ReplaySummary summary_;
  std::set<const MeasuredProblem*> problems_;
  size_t trials_ = 0;
  size_t failed_ = 0;
};

ReplaySummary Average(const std::string& searcher,
                      const std::vector<ReplaySummary>& tables) {
  ReplaySummary overall;
  overall.table = kOverall;
  overall.searcher = searcher;
  double count = 0.0;
  for (const ReplaySummary& table : tables) {
    if (table.searcher != searcher) continue;
    overall.mean.resize(table.mean.size(), 0.0);
    overall.worst.resize(table.worst.size(), 0.0);
    for (size_t i = 0; i < table.mean.size(); ++i) {
      overall.mean[i] += table.mean[i];
      overall.worst[i] = std::max(overall.worst[i], table.worst[i]);
    }
    overall.failed_share += table.failed_share;
    overall.problems += table.problems;
    overall.runs += table.runs;
    count += 1.0;
  }
  for (double& mean : overall.mean) mean /= count;
  overall.failed_share /= count;
  return overall;
}

std::vector<std::vector<std::string>> MakeCells(
    const std::vector<ReplaySummary>& summaries,
    const std::vector<int>& checkpoints) {
  std::vector<std::vector<std::string>> lines(1);
  lines[0] = {"table", "searcher", "problems", "runs"};
  for (const int checkpoint : checkpoints) {
    lines[0].push_back(absl::StrCat("mean@", checkpoint));
    lines[0].push_back(absl::StrCat("worst@", checkpoint));
  }
  lines[0].push_back("failed_share");
  for (const ReplaySummary& summary : summaries) {
    std::vector<std::string> line = {summary.table, summary.searcher,
                                     absl::StrCat(summary.problems),
                                     absl::StrCat(summary.runs)};
    for (size_t i = 0; i < checkpoints.size(); ++i) {
      line.push_back(absl::StrFormat("%.2f", summary.mean[i]));
      line.push_back(absl::StrFormat("%.2f", summary.worst[i]));
    }
    line.push_back(absl::StrFormat("%.3f", summary.failed_share));
    lines.push_back(std::move(line));
  }
  return lines;
}

// Columns padded to one width; the first two to the left, figures to the right.
std::string Align(const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths(lines[0].size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      widths[i] = std::max(widths[i], line[i].size());
    }
  }
  std::string text;
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string pad(widths[i] - line[i].size(), ' ');
      const bool last = i + 1 == line.size();
      absl::StrAppend(&text, i < 2 ? line[i] : pad, i < 2 ? pad : line[i],
                      last ? "\n" : "  ");
    }
  }
  return text;
}

std::string Join(const std::vector<std::vector<std::string>>& lines,
                 ReportFormat format) {
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (format == ReportFormat::kCsv) {
      absl::StrAppend(
          &text,
          absl::StrJoin(lines[i], ",",
                        [](std::string* out, const std::string& cell) {
                          out->append(FormatCsvCell(cell));
                        }),
          "\n");
      continue;
    }
    absl::StrAppend(&text, "| ", absl::StrJoin(lines[i], " | "), " |\n");
    if (i > 0) continue;
    for (size_t c = 0; c < lines[0].size(); ++c) {
      absl::StrAppend(&text, c < 2 ? "|---" : "|---:");
    }
    absl::StrAppend(&text, "|\n");
  }
  return text;
}

std::string FormatJson(const std::vector<ReplaySummary>& summaries,
                       const std::vector<int>& checkpoints) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ReplaySummary& summary : summaries) {
    nlohmann::ordered_json row;
    row["table"] = summary.table;
    row["searcher"] = summary.searcher;
    row["problems"] = summary.problems;
    row["runs"] = summary.runs;
    row["percent_below_best"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < checkpoints.size(); ++i) {
      row["percent_below_best"].push_back({{"trials", checkpoints[i]},
                                           {"mean", summary.mean[i]},
                                           {"worst", summary.worst[i]}});
    }
    row["failed_share"] = summary.failed_share;
    rows.push_back(std::move(row));
  }
  return rows.dump(2) + "\n";
}

}  // namespace

absl::StatusOr<ReportFormat> ParseReportFormat(absl::string_view word) {
  if (word == "table") return ReportFormat::kTable;
  if (word == "json") return ReportFormat::kJson;
  if (word == "csv") return ReportFormat::kCsv;
  if (word == "markdown") return ReportFormat::kMarkdown;
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "' is not one of table, json, csv, markdown"));
}

std::vector<int> KeepReached(std::vector<int> checkpoints, int trials) {
  std::erase_if(checkpoints, [trials](int at) { return at > trials; });
  if (checkpoints.empty()) checkpoints.push_back(trials);
  return checkpoints;
}

std::vector<ReplaySummary> Summarize(const std::vector<ReplayResult>& results,
                                     const std::vector<int>& checkpoints) {
  std::vector<Sum> sums;
  std::vector<std::string> searchers;
  std::set<std::string> tables;
  for (const ReplayResult& result : results) {
    const std::string& table = result.table->spec.name;
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const Sum& one) {
      return one.Is(table, result.searcher);
    });
    if (sum == sums.end()) {
      sums.emplace_back(table, result.searcher, checkpoints.size());
      sum = sums.end() - 1;
    }
    sum->Add(result, checkpoints);
    tables.insert(table);
    if (std::find(searchers.begin(), searchers.end(), result.searcher) ==
        searchers.end()) {
      searchers.push_back(result.searcher);
    }
  }
  std::vector<ReplaySummary> summaries;
  for (Sum& sum : sums) summaries.push_back(sum.Finish());
  if (tables.size() < 2) return summaries;
  const std::vector<ReplaySummary> by_table = summaries;
  for (const std::string& searcher : searchers) {
    summaries.push_back(Average(searcher, by_table));
  }
  return summaries;
}

std::string FormatReport(const std::vector<ReplaySummary>& summaries,
                         const std::vector<int>& checkpoints,
                         ReportFormat format) {
  if (format == ReportFormat::kJson) return FormatJson(summaries, checkpoints);
  const auto cells = MakeCells(summaries, checkpoints);
  return format == ReportFormat::kTable ? Align(cells) : Join(cells, format);
}

std::string FormatTrials(const std::vector<ReplayResult>& results) {
  std::string text =
      "table,context,searcher,seed,trial,source,suggested_by,ok,objective,"
      "percent_below_best,configuration\n";
  for (const ReplayResult& result : results) {
    const MeasuredTable& table = *result.table;
    const std::string context =
        FormatCsvCell(DescribeContext(table, *result.problem));
    for (size_t i = 0; i < result.trials.size(); ++i) {
      const ReplayedTrial& trial = result.trials[i];
      const MeasuredConfiguration& one =
          result.problem->configurations[trial.configuration];
      std::string configuration;
      for (size_t p = 0; p < table.params.size(); ++p) {
        absl::StrAppend(&configuration, p > 0 ? " " : "",
                        table.params[p].header, "=", one.values[p]);
      }
      absl::StrAppend(&text, FormatCsvCell(table.spec.name), ",", context, ",",
                      result.searcher, ",", result.seed, ",", i + 1, ",",
                      v1::Trial::Source_Name(trial.source), ",", trial.searcher,
                      ",", trial.ok ? 1 : 0, ",",
                      trial.ok ? absl::StrFormat("%.10g", trial.objective) : "",
                      ",", absl::StrFormat("%.4f", trial.percent_below_best));
      absl::StrAppend(&text, ",", FormatCsvCell(configuration), "\n");
    }
  }
  return text;
}

}  // namespace cubicml
