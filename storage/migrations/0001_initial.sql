-- The first schema. docs/sql.md explains it to those who query it.
--
-- Rows keep the values that are queried in typed columns, small ones first, so
-- that a scan does not touch the large ones behind them, and the whole
-- resource as a serialized proto at the end. Times are microseconds since 1970
-- in UTC. Enums are the names of the proto.

CREATE TABLE studies (
  -- AUTOINCREMENT: an id is never used again, also after the study is deleted.
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  display_name TEXT NOT NULL,
  objective TEXT NOT NULL,
  goal TEXT NOT NULL,
  create_time_us INTEGER NOT NULL,
  update_time_us INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  etag TEXT NOT NULL GENERATED ALWAYS AS (id || '-' || revision),
  next_trial_number INTEGER NOT NULL,
  labels TEXT NOT NULL
) STRICT;

CREATE INDEX studies_by_create_time ON studies (create_time_us, id);

-- Apart from studies, whose rows change with every trial that is created.
CREATE TABLE study_definitions (
  study_id INTEGER PRIMARY KEY REFERENCES studies (id) ON DELETE CASCADE,
  definition BLOB NOT NULL
) STRICT;

CREATE TABLE trials (
  study_id INTEGER NOT NULL REFERENCES studies (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  source TEXT NOT NULL,
  objective REAL,
  client_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  late INTEGER NOT NULL,
  create_time_us INTEGER NOT NULL,
  update_time_us INTEGER NOT NULL,
  end_time_us INTEGER,
  lease_expire_time_us INTEGER,
  model_version INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  parameters TEXT NOT NULL,
  context TEXT NOT NULL,
  metrics TEXT NOT NULL,
  trial BLOB NOT NULL,
  PRIMARY KEY (study_id, number)
) STRICT;

CREATE INDEX trials_by_state ON trials (study_id, state, number);

CREATE INDEX trials_by_create_time
  ON trials (study_id, create_time_us, number);

CREATE INDEX trials_by_objective ON trials (study_id, objective, number)
  WHERE objective IS NOT NULL;

CREATE INDEX trials_by_end_time ON trials (study_id, end_time_us, number)
  WHERE end_time_us IS NOT NULL;

-- Small: only the trials that are handed out.
CREATE INDEX trials_by_lease ON trials (lease_expire_time_us)
  WHERE state IN ('ACTIVE', 'STOPPING');

-- How many trials of a study are in each state, kept by the triggers below:
-- counting a million trials takes too long for a list of studies.
CREATE TABLE trial_counts (
  study_id INTEGER NOT NULL REFERENCES studies (id) ON DELETE CASCADE,
  state TEXT NOT NULL,
  trials INTEGER NOT NULL,
  PRIMARY KEY (study_id, state)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER trials_count_insert AFTER INSERT ON trials BEGIN
  INSERT INTO trial_counts VALUES (new.study_id, new.state, 1)
    ON CONFLICT DO UPDATE SET trials = trials + 1;
END;

CREATE TRIGGER trials_count_update AFTER UPDATE OF state ON trials
  WHEN new.state <> old.state BEGIN
  UPDATE trial_counts SET trials = trials - 1
    WHERE study_id = old.study_id AND state = old.state;
  INSERT INTO trial_counts VALUES (new.study_id, new.state, 1)
    ON CONFLICT DO UPDATE SET trials = trials + 1;
END;

CREATE TRIGGER trials_count_delete AFTER DELETE ON trials BEGIN
  UPDATE trial_counts SET trials = trials - 1
    WHERE study_id = old.study_id AND state = old.state;
END;

-- Answers to calls that had a request_id.
CREATE TABLE requests (
  id TEXT PRIMARY KEY,
  method TEXT NOT NULL,
  fingerprint INTEGER NOT NULL,
  create_time_us INTEGER NOT NULL,
  -- The study that was created or updated, or whose trials were created.
  study_id INTEGER,
  -- The trials that were created: trial_count numbers from first_trial.
  first_trial INTEGER,
  trial_count INTEGER,
  -- The resource as it was answered, where it is answered again as it was.
  answer BLOB
) STRICT;

CREATE INDEX requests_by_create_time ON requests (create_time_us);

-- In the database, so that a backup of one file is a backup of everything.
CREATE TABLE models (
  study_id INTEGER NOT NULL REFERENCES studies (id) ON DELETE CASCADE,
  version INTEGER NOT NULL,
  kind TEXT NOT NULL,
  rows INTEGER NOT NULL,
  kendall_tau REAL,
  coverage90 REAL,
  feasibility_auc REAL,
  training_time_us INTEGER NOT NULL,
  create_time_us INTEGER NOT NULL,
  quality BLOB NOT NULL,
  checkpoint BLOB NOT NULL,
  PRIMARY KEY (study_id, version)
) STRICT;
