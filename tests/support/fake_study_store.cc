// SPDX-License-Identifier: Apache-2.0

#include "tests/support/fake_study_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/proto_time.h"
#include "storage/store_errors.h"
#include "storage/trial_row.h"

namespace cubicml {
namespace {

bool HasNoKey(const PageCursor& cursor) {
  return std::holds_alternative<std::monostate>(cursor.key);
}

// Whether `a` stands before `b` in a list.
bool Before(const ListOrder& order, const PageCursor& a, const PageCursor& b) {
  if (HasNoKey(a) != HasNoKey(b)) return HasNoKey(b);
  const auto left = std::make_pair(a.key, a.id);
  const auto right = std::make_pair(b.key, b.id);
  return order.descending ? right < left : left < right;
}

template <typename Resource>
struct Entry {
  PageCursor cursor;
  const Resource* resource;
};

// How many of the first entries fit.
template <typename Resource>
size_t PageLength(const std::vector<Entry<Resource>>& entries, size_t max_count,
                  size_t max_bytes) {
  size_t bytes = 0;
  size_t length = 0;
  while (length < std::min(entries.size(), max_count)) {
    bytes += entries[length].resource->ByteSizeLong();
    if (bytes > max_bytes && length > 0) break;
    ++length;
  }
  return length;
}

// Sorts, drops what is not after the query's cursor, cuts to a page. Returns
// the next page's token.
template <typename Resource>
std::string CutPage(const ListQuery& query, size_t max_bytes,
                    std::vector<Entry<Resource>>* entries) {
  std::sort(entries->begin(), entries->end(),
            [&query](const auto& a, const auto& b) {
              return Before(query.order(), a.cursor, b.cursor);
            });
  if (query.cursor().has_value()) {
    std::erase_if(*entries, [&query](const auto& entry) {
      return !Before(query.order(), *query.cursor(), entry.cursor);
    });
  }
  const size_t length =
      PageLength(*entries, static_cast<size_t>(query.page_size()), max_bytes);
  if (entries->size() == length) return "";
  entries->resize(length);
  return query.NextPageToken(entries->back().cursor);
}

absl::Status Ask(const ReadCheck& check) {
  return check == nullptr ? absl::OkStatus() : check();
}

bool HoldsLease(const v1::Trial& trial) {
  return trial.state() == v1::Trial::ACTIVE ||
         trial.state() == v1::Trial::STOPPING;
}

std::string FormatEtag(int64_t id, int64_t revision) {
  return absl::StrCat(id, "-", revision);
}

}  // namespace

void FakeStudyStore::SetWriteError(absl::Status error) {
  MutexLock lock(&mu_);
  write_error_ = std::move(error);
}

void FakeStudyStore::SetScanHook(std::function<void()> hook) {
  MutexLock lock(&mu_);
  scan_hook_ = std::move(hook);
}

void FakeStudyStore::SetUpdateHook(std::function<void()> hook) {
  MutexLock lock(&mu_);
  update_hook_ = std::move(hook);
}

void FakeStudyStore::RunUpdateHook() {
  std::function<void()> hook;
  {
    MutexLock lock(&mu_);
    hook = std::exchange(update_hook_, nullptr);
  }
  if (hook == nullptr) return;
  hook();
  MutexLock lock(&mu_);
  update_hook_ = std::move(hook);
}

int64_t FakeStudyStore::scans() const {
  MutexLock lock(&mu_);
  return scans_;
}

int64_t FakeStudyStore::NowMicros() {
  if (clock_ != nullptr) return absl::ToUnixMicros(clock_->Now());
  return ++ticks_ * 1'000'000;
}

FakeStudyStore::StudyRecord* FakeStudyStore::FindStudy(absl::string_view name,
                                                       int64_t* id) {
  for (auto& [study_id, record] : studies_) {
    if (record.study.name() == name) {
      *id = study_id;
      return &record;
    }
  }
  return nullptr;
}

FakeStudyStore::StudyRecord* FakeStudyStore::FindStudy(StudyId id) {
  const auto found = studies_.find(id.value);
  return found == studies_.end() ? nullptr : &found->second;
}

absl::StatusOr<const FakeStudyStore::Request*> FakeStudyStore::FindRequest(
    const RequestKey& key) {
  const auto found = requests_.find(key.id);
  if (key.id.empty() || found == requests_.end()) return nullptr;
  if (found->second.method != key.method ||
      found->second.fingerprint != key.fingerprint) {
    return RequestIdTakenError(found->second.method);
  }
  return &found->second;
}

FakeStudyStore::Request* FakeStudyStore::AddRequest(const RequestKey& key) {
  if (key.id.empty()) return &unnamed_request_;
  Request& request = requests_[key.id];
  request.method = key.method;
  request.fingerprint = key.fingerprint;
  request.create_time_us = NowMicros();
  return &request;
}

absl::StatusOr<StoredStudy> FakeStudyStore::CreateStudy(const v1::Study& study,
                                                        const RequestKey& key) {
  MutexLock lock(&mu_);
  CUBICML_ASSIGN_OR_RETURN(const Request* request, FindRequest(key));
  if (request != nullptr) return std::get<StoredStudy>(request->answer);
  CUBICML_RETURN_IF_ERROR(write_error_);
  CUBICML_RETURN_IF_ERROR(CheckStudyStrings(study));
  int64_t id = 0;
  if (FindStudy(study.name(), &id) != nullptr) {
    return StudyExistsError(study.name());
  }
  id = next_study_++;
  StudyRecord record;
  record.study = study;
  record.study.clear_progress();
  record.study.set_etag(FormatEtag(id, 1));
  const int64_t now = NowMicros();
  SetTimestamp(now, record.study.mutable_create_time());
  SetTimestamp(now, record.study.mutable_update_time());
  record.objective = FirstObjective(study);
  StoredStudy stored{StudyId{id}, record.study};
  studies_[id] = std::move(record);
  AddRequest(key)->answer = stored;
  return stored;
}

absl::StatusOr<StoredStudy> FakeStudyStore::GetStudy(absl::string_view name) {
  MutexLock lock(&mu_);
  int64_t id = 0;
  const StudyRecord* record = FindStudy(name, &id);
  if (record == nullptr) return StudyNotFoundError(name);
  return StoredStudy{StudyId{id}, record->study};
}

absl::StatusOr<StudyPage> FakeStudyStore::ListStudies(
    const ListOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const ListQuery query,
                           ListQuery::ForStudies(options));
  CUBICML_RETURN_IF_ERROR(Ask(options.check));
  MutexLock lock(&mu_);
  std::vector<Entry<v1::Study>> entries;
  for (const auto& [id, record] : studies_) {
    CUBICML_RETURN_IF_ERROR(Ask(options.check));
    const v1::Study& study = record.study;
    const bool matches = query.filter().Matches(
        [&study](const FilterField& field, absl::string_view key) {
          return StudyFieldValue(study, field, key);
        });
    if (!matches) continue;
    entries.push_back(
        {{StudyFieldValue(study, *query.order().field, ""), id}, &study});
  }
  StudyPage page;
  page.next_page_token = CutPage(query, options.max_bytes, &entries);
  for (const auto& entry : entries) {
    page.studies.push_back({StudyId{entry.cursor.id}, *entry.resource});
  }
  return page;
}

absl::StatusOr<StoredStudy> FakeStudyStore::UpdateStudy(
    absl::string_view name, const StudyMutation& mutation,
    const RequestKey& key) {
  RunUpdateHook();
  MutexLock lock(&mu_);
  CUBICML_ASSIGN_OR_RETURN(const Request* request, FindRequest(key));
  if (request != nullptr) return std::get<StoredStudy>(request->answer);
  CUBICML_RETURN_IF_ERROR(write_error_);
  int64_t id = 0;
  StudyRecord* record = FindStudy(name, &id);
  if (record == nullptr) return StudyNotFoundError(name);
  v1::Study changed = record->study;
  CUBICML_RETURN_IF_ERROR(mutation(&changed));
  CUBICML_RETURN_IF_ERROR(CheckStudyStrings(changed));
  changed.set_name(record->study.name());
  changed.clear_progress();
  *changed.mutable_create_time() = record->study.create_time();
  SetTimestamp(NowMicros(), changed.mutable_update_time());
  changed.set_etag(FormatEtag(id, ++record->revision));
  record->study = changed;
  record->objective = FirstObjective(changed);
  StoredStudy stored{StudyId{id}, std::move(changed)};
  AddRequest(key)->answer = stored;
  return stored;
}

absl::Status FakeStudyStore::DeleteStudy(absl::string_view name,
                                         absl::string_view etag, bool force,
                                         const RequestKey& key) {
  MutexLock lock(&mu_);
  CUBICML_ASSIGN_OR_RETURN(const Request* request, FindRequest(key));
  if (request != nullptr) return absl::OkStatus();
  CUBICML_RETURN_IF_ERROR(write_error_);
  int64_t id = 0;
  const StudyRecord* record = FindStudy(name, &id);
  if (record == nullptr) return StudyNotFoundError(name);
  if (!etag.empty() && etag != record->study.etag()) {
    return StaleEtagError(name);
  }
  int64_t held = 0;
  for (const auto& [number, trial] : record->trials) {
    if (HoldsLease(trial)) ++held;
  }
  if (held > 0 && !force) return StudyInUseError(name, held);
  studies_.erase(id);
  AddRequest(key);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::Trial>> FakeStudyStore::CreateTrials(
    StudyId study, std::vector<v1::Trial> trials, const RequestKey& key) {
  MutexLock lock(&mu_);
  CUBICML_ASSIGN_OR_RETURN(const Request* request, FindRequest(key));
  if (request != nullptr) {
    return TrialsOf(std::get<CreatedTrials>(request->answer));
  }
  CUBICML_RETURN_IF_ERROR(write_error_);
  for (v1::Trial& trial : trials) {
    trial.clear_name();
    CUBICML_RETURN_IF_ERROR(MakeTrialRow(trial).status());
  }
  StudyRecord* record = FindStudy(study);
  if (record == nullptr) return StudyNotFoundError(study);
  const int64_t now = NowMicros();
  CreatedTrials created{study.value, {}};
  for (v1::Trial& trial : trials) {
    const int64_t number = record->next_number++;
    trial.set_name(absl::StrCat(record->study.name(), "/trials/", number));
    SetTimestamp(now, trial.mutable_create_time());
    SetTimestamp(now, trial.mutable_update_time());
    record->trials[number] = trial;
    created.numbers.push_back(number);
  }
  AddRequest(key)->answer = std::move(created);
  return trials;
}

absl::StatusOr<v1::Trial> FakeStudyStore::UpdateTrial(
    StudyId study, TrialNumber number, const TrialMutation& mutation,
    const RequestKey& key) {
  MutexLock lock(&mu_);
  CUBICML_ASSIGN_OR_RETURN(const Request* request, FindRequest(key));
  if (request != nullptr) return std::get<v1::Trial>(request->answer);
  CUBICML_RETURN_IF_ERROR(write_error_);
  StudyRecord* record = FindStudy(study);
  if (record == nullptr || !record->trials.contains(number.value)) {
    return TrialNotFoundError(study, number);
  }
  v1::Trial& stored = record->trials[number.value];
  v1::Trial changed = stored;
  CUBICML_RETURN_IF_ERROR(mutation(&changed));
  changed.set_name(stored.name());
  CUBICML_RETURN_IF_ERROR(MakeTrialRow(changed).status());
  *changed.mutable_create_time() = stored.create_time();
  SetTimestamp(NowMicros(), changed.mutable_update_time());
  stored = changed;
  AddRequest(key)->answer = changed;
  return changed;
}

absl::StatusOr<v1::Trial> FakeStudyStore::GetTrial(StudyId study,
                                                   TrialNumber number) {
  MutexLock lock(&mu_);
  StudyRecord* record = FindStudy(study);
  if (record == nullptr || !record->trials.contains(number.value)) {
    return TrialNotFoundError(study, number);
  }
  return record->trials[number.value];
}

absl::StatusOr<TrialPage> FakeStudyStore::ListTrials(
    StudyId study, const ListOptions& options) {
  CUBICML_ASSIGN_OR_RETURN(const ListQuery query,
                           ListQuery::ForTrials(study, options));
  CUBICML_RETURN_IF_ERROR(Ask(options.check));
  MutexLock lock(&mu_);
  TrialPage page;
  const StudyRecord* record = FindStudy(study);
  if (record == nullptr) return page;
  std::vector<Entry<v1::Trial>> entries;
  for (const auto& item : record->trials) {
    const int64_t number = item.first;
    const v1::Trial& trial = item.second;
    CUBICML_RETURN_IF_ERROR(Ask(options.check));
    const std::optional<double> objective =
        ObjectiveOf(trial, record->objective);
    const auto value = [&](const FilterField& field,
                           absl::string_view /*key*/) {
      return TrialFieldValue(trial, number, objective, field);
    };
    if (!query.filter().Matches(value)) continue;
    entries.push_back({{value(*query.order().field, ""), number}, &trial});
  }
  page.next_page_token = CutPage(query, options.max_bytes, &entries);
  for (const auto& entry : entries) page.trials.push_back(*entry.resource);
  return page;
}

absl::Status FakeStudyStore::ScanTrials(
    StudyId study, const ScanOptions& options,
    const std::function<absl::Status(v1::Trial&&)>& visit) {
  CUBICML_ASSIGN_OR_RETURN(const Filter parsed,
                           ParseTrialFilter(options.filter));
  CUBICML_RETURN_IF_ERROR(Ask(options.check));
  std::function<void()> hook;
  {
    MutexLock lock(&mu_);
    ++scans_;
    hook = scan_hook_;
  }
  if (hook != nullptr) hook();
  std::vector<v1::Trial> trials;  // so that `visit` may call this store
  {
    MutexLock lock(&mu_);
    const StudyRecord* record = FindStudy(study);
    if (record == nullptr) return absl::OkStatus();
    for (auto it = record->trials.upper_bound(options.after.value);
         it != record->trials.end(); ++it) {
      CUBICML_RETURN_IF_ERROR(Ask(options.check));
      const std::optional<double> objective =
          ObjectiveOf(it->second, record->objective);
      const bool matches = parsed.Matches(
          [&](const FilterField& field, absl::string_view /*key*/) {
            return TrialFieldValue(it->second, it->first, objective, field);
          });
      if (matches) trials.push_back(it->second);
    }
  }
  for (v1::Trial& trial : trials) {
    CUBICML_RETURN_IF_ERROR(visit(std::move(trial)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::map<v1::Trial::State, int64_t>> FakeStudyStore::CountTrials(
    StudyId study) {
  MutexLock lock(&mu_);
  std::map<v1::Trial::State, int64_t> counts;
  const StudyRecord* record = FindStudy(study);
  if (record == nullptr) return counts;
  for (const auto& [number, trial] : record->trials) ++counts[trial.state()];
  return counts;
}

absl::StatusOr<std::vector<StudyStore::TrialKey>>
FakeStudyStore::ListExpiredLeases(absl::Time now) {
  MutexLock lock(&mu_);
  std::vector<TrialKey> expired;
  for (const auto& [id, record] : studies_) {
    for (const auto& [number, trial] : record.trials) {
      if (HoldsLease(trial) && trial.has_lease_expire_time() &&
          MicrosFromTimestamp(trial.lease_expire_time()) <
              absl::ToUnixMicros(now)) {
        expired.push_back({StudyId{id}, TrialNumber{number}});
      }
    }
  }
  return expired;
}

absl::StatusOr<std::vector<v1::Trial>> FakeStudyStore::TrialsOf(
    const CreatedTrials& created) {
  std::vector<v1::Trial> trials;
  if (created.numbers.empty()) return trials;
  StudyRecord* record = FindStudy(StudyId{created.study});
  if (record == nullptr) return RequestTrialsGoneError();
  for (const int64_t number : created.numbers) {
    trials.push_back(record->trials[number]);
  }
  return trials;
}

absl::StatusOr<std::optional<std::vector<v1::Trial>>>
FakeStudyStore::FindCreatedTrials(const RequestKey& key) {
  MutexLock lock(&mu_);
  CUBICML_ASSIGN_OR_RETURN(const Request* request, FindRequest(key));
  if (request == nullptr) return std::nullopt;
  CUBICML_ASSIGN_OR_RETURN(std::vector<v1::Trial> trials,
                           TrialsOf(std::get<CreatedTrials>(request->answer)));
  return trials;
}

absl::StatusOr<int64_t> FakeStudyStore::DeleteRequestsBefore(
    absl::Time before) {
  MutexLock lock(&mu_);
  CUBICML_RETURN_IF_ERROR(write_error_);
  return static_cast<int64_t>(
      std::erase_if(requests_, [before](const auto& entry) {
        return entry.second.create_time_us < absl::ToUnixMicros(before);
      }));
}

absl::Status FakeStudyStore::CreateModel(StudyId study,
                                         const StoredModel& model) {
  MutexLock lock(&mu_);
  CUBICML_RETURN_IF_ERROR(write_error_);
  StudyRecord* record = FindStudy(study);
  if (record == nullptr) return StudyNotFoundError(study);
  auto& models = record->models;
  const int64_t version = model.quality.model_version();
  const int64_t latest = models.empty() ? 0 : models.rbegin()->first;
  if (version <= latest) return ModelVersionError(version, latest);
  models[version] = model;
  if (models.size() > kKeptModels) models.erase(models.begin());
  return absl::OkStatus();
}

absl::StatusOr<StoredModel> FakeStudyStore::GetLatestModel(StudyId study) {
  MutexLock lock(&mu_);
  const StudyRecord* record = FindStudy(study);
  if (record == nullptr || record->models.empty()) {
    return ModelNotFoundError(study);
  }
  return record->models.rbegin()->second;
}

absl::Status FakeStudyStore::WriteHealth() const {
  MutexLock lock(&mu_);
  return write_error_;
}

}  // namespace cubicml
