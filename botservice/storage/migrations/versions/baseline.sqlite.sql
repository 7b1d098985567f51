CREATE TABLE access_invitations (
  chat TEXT NOT NULL,
  person TEXT NOT NULL,
  invited_at BIGINT NOT NULL,
  CONSTRAINT pk_access_invitations PRIMARY KEY (chat)
)

CREATE TABLE access_refusals (
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  told_at BIGINT NOT NULL,
  CONSTRAINT pk_access_refusals PRIMARY KEY (kind, subject)
)

CREATE TABLE access_roles (
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  role TEXT NOT NULL,
  granted_by TEXT,
  granted_at BIGINT NOT NULL,
  CONSTRAINT pk_access_roles PRIMARY KEY (kind, subject)
)

CREATE TABLE alerts (
  name TEXT NOT NULL,
  is_on BOOLEAN NOT NULL,
  since BIGINT,
  told_at BIGINT,
  CONSTRAINT pk_alerts PRIMARY KEY (name)
)

CREATE TABLE budget_notices (
  notice TEXT NOT NULL,
  told_at BIGINT NOT NULL,
  CONSTRAINT pk_budget_notices PRIMARY KEY (notice)
)

CREATE TABLE budget_rates (
  scope TEXT NOT NULL,
  subject TEXT NOT NULL,
  minute TEXT NOT NULL,
  messages INTEGER NOT NULL,
  CONSTRAINT pk_budget_rates PRIMARY KEY (scope, subject)
)

CREATE TABLE contexts (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  key_hash TEXT NOT NULL,
  context_keys TEXT NOT NULL,
  metadata TEXT NOT NULL,
  last_position INTEGER DEFAULT '0' NOT NULL,
  deletion_version INTEGER DEFAULT '0' NOT NULL,
  is_shared BOOLEAN DEFAULT 0 NOT NULL,
  only_identity_id INTEGER,
  created_at BIGINT NOT NULL,
  fresh_from INTEGER DEFAULT '0' NOT NULL,
  forgotten_at BIGINT,
  last_message_id INTEGER DEFAULT '0' NOT NULL,
  message_count INTEGER DEFAULT '0',
  untrusted_at INTEGER,
  CONSTRAINT uq_contexts_key_hash UNIQUE (key_hash)
)

CREATE INDEX ix_contexts_forgotten ON contexts (id) WHERE forgotten_at IS NOT NULL

CREATE INDEX ix_contexts_last_message_id ON contexts (last_message_id, id)

CREATE INDEX ix_contexts_only_identity_id ON contexts (only_identity_id) WHERE only_identity_id IS NOT NULL

CREATE INDEX ix_contexts_with_metadata ON contexts (id) WHERE metadata <> '{}'

CREATE TABLE ended_logins (
  digest TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_ended_logins PRIMARY KEY (digest)
)

CREATE TABLE model_refusals (
  server TEXT NOT NULL,
  model TEXT NOT NULL,
  what TEXT NOT NULL,
  wording TEXT,
  learned_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_model_refusals PRIMARY KEY (server, model, what)
)

CREATE TABLE model_usage (
  day TEXT NOT NULL,
  context_id INTEGER NOT NULL,
  person TEXT NOT NULL,
  model TEXT NOT NULL,
  chat TEXT NOT NULL,
  calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  cache_write_tokens INTEGER DEFAULT '0' NOT NULL,
  CONSTRAINT pk_model_usage PRIMARY KEY (day, context_id, person, model)
)

CREATE INDEX ix_model_usage_chat_day ON model_usage (chat, day)

CREATE INDEX ix_model_usage_person_day ON model_usage (person, day)

CREATE TABLE model_usage_days (
  day TEXT NOT NULL,
  model TEXT NOT NULL,
  shard INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  CONSTRAINT pk_model_usage_days PRIMARY KEY (day, model, shard)
)

CREATE TABLE persons (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  failed_guesses INTEGER DEFAULT '0' NOT NULL,
  guessing_since BIGINT,
  created_at BIGINT NOT NULL
)

CREATE TABLE schema_compatibility (
  oldest_version TEXT NOT NULL
)

CREATE TABLE slack_grids (
  team_id TEXT NOT NULL,
  enterprise_id TEXT NOT NULL,
  CONSTRAINT pk_slack_grids PRIMARY KEY (team_id)
)

CREATE TABLE slack_installations (
  enterprise_id TEXT NOT NULL,
  team_id TEXT NOT NULL,
  team_name TEXT,
  is_enterprise BOOLEAN DEFAULT 0 NOT NULL,
  app_id TEXT,
  bot_id TEXT,
  bot_user_id TEXT NOT NULL,
  scopes TEXT NOT NULL,
  token BLOB NOT NULL,
  installed_by TEXT,
  installed_at BIGINT NOT NULL,
  refresh_token BLOB,
  token_expires_at BIGINT,
  refreshing_until BIGINT,
  CONSTRAINT pk_slack_installations PRIMARY KEY (enterprise_id, team_id)
)

CREATE TABLE slack_oauth_states (
  state TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_slack_oauth_states PRIMARY KEY (state)
)

CREATE INDEX ix_slack_oauth_states_expires_at ON slack_oauth_states (expires_at)

CREATE TABLE slack_refusals (
  team_id TEXT NOT NULL,
  feature TEXT NOT NULL,
  refused_at BIGINT NOT NULL,
  CONSTRAINT pk_slack_refusals PRIMARY KEY (team_id, feature)
)

CREATE TABLE telegram_menus (
  bot_id INTEGER NOT NULL,
  digest TEXT NOT NULL,
  set_at BIGINT NOT NULL,
  CONSTRAINT pk_telegram_menus PRIMARY KEY (bot_id)
)

CREATE TABLE blobs (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  data BLOB NOT NULL,
  is_encrypted BOOLEAN DEFAULT 0 NOT NULL,
  CONSTRAINT uq_blobs_context_id_sha256 UNIQUE (context_id, sha256),
  CONSTRAINT fk_blobs_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE TABLE identities (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  person_id INTEGER NOT NULL,
  platform TEXT NOT NULL,
  platform_id TEXT NOT NULL,
  name TEXT,
  created_at BIGINT NOT NULL,
  CONSTRAINT uq_identities_platform_platform_id UNIQUE (platform, platform_id),
  CONSTRAINT fk_identities_person_id FOREIGN KEY(person_id) REFERENCES persons (id) ON DELETE CASCADE
)

CREATE INDEX ix_identities_person_id ON identities (person_id)

CREATE TABLE loose_files (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  CONSTRAINT fk_loose_files_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE INDEX ix_loose_files_context_id ON loose_files (context_id)

CREATE TABLE messages (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  role TEXT NOT NULL,
  text TEXT NOT NULL,
  attachments TEXT,
  author_platform TEXT,
  author_id TEXT,
  author_name TEXT,
  created_at BIGINT NOT NULL,
  token_count INTEGER,
  token_encoding TEXT,
  external_id TEXT,
  event_id INTEGER,
  answers_turn_id INTEGER,
  edited_at BIGINT,
  own_text TEXT,
  said_by_others TEXT,
  is_all_own BOOLEAN,
  CONSTRAINT uq_messages_context_id_position UNIQUE (context_id, position),
  CONSTRAINT fk_messages_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE,
  CONSTRAINT uq_messages_event_id UNIQUE (event_id),
  CONSTRAINT uq_messages_answers_turn_id UNIQUE (answers_turn_id)
)

CREATE INDEX ix_messages_author ON messages (author_platform, author_id, context_id) WHERE author_id IS NOT NULL

CREATE INDEX ix_messages_edited ON messages (edited_at) WHERE edited_at IS NOT NULL

CREATE INDEX ix_messages_external ON messages (context_id, external_id) WHERE external_id IS NOT NULL

CREATE INDEX ix_messages_of_people ON messages (context_id, position) WHERE role = 'user'

CREATE TABLE notes (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  number INTEGER NOT NULL,
  text TEXT NOT NULL,
  at BIGINT NOT NULL,
  message_ids TEXT NOT NULL,
  first_position INTEGER NOT NULL,
  last_position INTEGER NOT NULL,
  span INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  CONSTRAINT uq_notes_context_id_number UNIQUE (context_id, number),
  CONSTRAINT fk_notes_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE INDEX ix_notes_context_id_last_position ON notes (context_id, last_position)

CREATE TABLE observed (
  context_id INTEGER NOT NULL,
  read_to INTEGER DEFAULT '0' NOT NULL,
  again_to INTEGER DEFAULT '0' NOT NULL,
  version INTEGER DEFAULT '0' NOT NULL,
  seen_id INTEGER DEFAULT '0' NOT NULL,
  due_at BIGINT,
  tries INTEGER DEFAULT '0' NOT NULL,
  last_number INTEGER DEFAULT '0' NOT NULL,
  CONSTRAINT pk_observed PRIMARY KEY (context_id),
  CONSTRAINT fk_observed_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE INDEX ix_observed_due_at ON observed (due_at) WHERE due_at IS NOT NULL

CREATE INDEX ix_observed_seen_id ON observed (seen_id)

CREATE TABLE observer_reservations (
  context_id INTEGER NOT NULL,
  person TEXT NOT NULL,
  chat TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_observer_reservations PRIMARY KEY (context_id),
  CONSTRAINT fk_observer_reservations_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE TABLE refused_forms (
  context_id INTEGER NOT NULL,
  form TEXT NOT NULL,
  refused_at BIGINT NOT NULL,
  CONSTRAINT pk_refused_forms PRIMARY KEY (context_id, form),
  CONSTRAINT fk_refused_forms_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE TABLE refused_messages (
  context_id INTEGER NOT NULL,
  model TEXT NOT NULL,
  kept_out TEXT NOT NULL,
  is_told BOOLEAN DEFAULT 0 NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_refused_messages PRIMARY KEY (context_id, model),
  CONSTRAINT fk_refused_messages_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE TABLE refused_notes (
  context_id INTEGER NOT NULL,
  digest TEXT NOT NULL,
  CONSTRAINT pk_refused_notes PRIMARY KEY (context_id, digest),
  CONSTRAINT fk_refused_notes_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE TABLE reminders (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  "key" TEXT NOT NULL,
  transport TEXT NOT NULL,
  status TEXT NOT NULL,
  text TEXT NOT NULL,
  is_task BOOLEAN DEFAULT 0 NOT NULL,
  due_at BIGINT NOT NULL,
  starts_at BIGINT NOT NULL,
  repeats TEXT,
  time_zone TEXT NOT NULL,
  language TEXT,
  author_platform TEXT,
  author_id TEXT,
  author_name TEXT,
  created_at BIGINT NOT NULL,
  fired_at BIGINT,
  finished_at BIGINT,
  CONSTRAINT fk_reminders_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE,
  CONSTRAINT uq_reminders_key UNIQUE ("key")
)

CREATE INDEX ix_reminders_context_id_id ON reminders (context_id, id)

CREATE INDEX ix_reminders_waiting ON reminders (due_at) WHERE status = 'waiting'

CREATE TABLE slack_titles (
  context_id INTEGER NOT NULL,
  thread_ts TEXT NOT NULL,
  titled_at BIGINT NOT NULL,
  CONSTRAINT pk_slack_titles PRIMARY KEY (context_id, thread_ts),
  CONSTRAINT fk_slack_titles_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE TABLE tool_grants (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  tool TEXT NOT NULL,
  author_platform TEXT,
  author_id TEXT,
  created_at BIGINT NOT NULL,
  tool_digest TEXT,
  CONSTRAINT fk_tool_grants_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE INDEX ix_tool_grants_context_id ON tool_grants (context_id)

CREATE TABLE turns (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  status TEXT NOT NULL,
  outcome TEXT,
  transport TEXT NOT NULL,
  order_key INTEGER NOT NULL,
  due_at BIGINT NOT NULL,
  attempts INTEGER DEFAULT '0' NOT NULL,
  error TEXT,
  system_prompt TEXT,
  keeps_steps BOOLEAN DEFAULT 0 NOT NULL,
  steps_taken INTEGER DEFAULT '0' NOT NULL,
  last_step_number INTEGER,
  joined_events INTEGER DEFAULT '0' NOT NULL,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  finished_at BIGINT,
  compacted_at BIGINT,
  due_set_at BIGINT,
  failures INTEGER DEFAULT '0' NOT NULL,
  question_id INTEGER,
  CONSTRAINT fk_turns_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE INDEX ix_turns_context_id_id ON turns (context_id, id)

CREATE INDEX ix_turns_due ON turns (due_at) WHERE status IN ('queued', 'running')

CREATE INDEX ix_turns_numbered ON turns (context_id, id) WHERE last_step_number IS NOT NULL

CREATE INDEX ix_turns_open ON turns (context_id, order_key) WHERE status IN ('queued', 'running')

CREATE INDEX ix_turns_set_aside ON turns (id) WHERE status = 'set_aside'

CREATE INDEX ix_turns_unanswered ON turns (outcome, id) WHERE outcome IN ('failed', 'stopped', 'refused')

CREATE INDEX ix_turns_uncompacted ON turns (id) WHERE compacted_at IS NULL

CREATE TABLE word_blocks (
  context_id INTEGER NOT NULL,
  block INTEGER NOT NULL,
  first_position INTEGER NOT NULL,
  last_position INTEGER NOT NULL,
  data BLOB NOT NULL,
  CONSTRAINT pk_word_blocks PRIMARY KEY (context_id, block, first_position),
  CONSTRAINT fk_word_blocks_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE TABLE access_codes (
  person TEXT NOT NULL,
  code TEXT NOT NULL,
  name TEXT,
  turn_id INTEGER NOT NULL,
  welcome TEXT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_access_codes PRIMARY KEY (person),
  CONSTRAINT uq_access_codes_code UNIQUE (code),
  CONSTRAINT fk_access_codes_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE
)

CREATE INDEX ix_access_codes_turn_id ON access_codes (turn_id)

CREATE TABLE budget_reservations (
  turn_id INTEGER NOT NULL,
  person TEXT NOT NULL,
  chat TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_budget_reservations PRIMARY KEY (turn_id),
  CONSTRAINT fk_budget_reservations_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE
)

CREATE TABLE deliveries (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  turn_id INTEGER NOT NULL,
  transport TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  payload TEXT NOT NULL,
  attempts INTEGER DEFAULT '0' NOT NULL,
  due_at BIGINT NOT NULL,
  external_id TEXT,
  error TEXT,
  created_at BIGINT NOT NULL,
  finished_at BIGINT,
  buttons TEXT,
  due_set_at BIGINT,
  replaces INTEGER,
  CONSTRAINT fk_deliveries_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE,
  CONSTRAINT fk_deliveries_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE
)

CREATE INDEX ix_deliveries_buttons ON deliveries (context_id, external_id) WHERE buttons IS NOT NULL

CREATE INDEX ix_deliveries_context_id ON deliveries (context_id)

CREATE INDEX ix_deliveries_due ON deliveries (due_at) WHERE status IN ('pending', 'attempting')

CREATE INDEX ix_deliveries_open ON deliveries (context_id, id) WHERE status IN ('pending', 'attempting')

CREATE INDEX ix_deliveries_turn_id ON deliveries (turn_id)

CREATE TABLE events (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  "key" TEXT NOT NULL,
  context_id INTEGER NOT NULL,
  turn_id INTEGER,
  transport TEXT NOT NULL,
  kind TEXT NOT NULL,
  order_key INTEGER NOT NULL,
  group_key TEXT,
  raw BLOB,
  received_at BIGINT NOT NULL,
  handled_at BIGINT,
  reading_at BIGINT,
  external_id TEXT,
  CONSTRAINT uq_events_key UNIQUE ("key"),
  CONSTRAINT fk_events_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE,
  CONSTRAINT fk_events_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE
)

CREATE INDEX ix_events_changes ON events (context_id) WHERE handled_at IS NULL AND kind IN ('edit', 'delete')

CREATE INDEX ix_events_context_id ON events (context_id)

CREATE INDEX ix_events_external ON events (context_id, external_id) WHERE external_id IS NOT NULL

CREATE INDEX ix_events_turn_id ON events (turn_id)

CREATE INDEX ix_events_unhandled ON events (context_id) WHERE turn_id IS NULL AND handled_at IS NULL

CREATE TABLE exports (
  turn_id INTEGER NOT NULL,
  context_id INTEGER NOT NULL,
  identity_id INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  made_at BIGINT NOT NULL,
  CONSTRAINT pk_exports PRIMARY KEY (turn_id),
  CONSTRAINT fk_exports_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE,
  CONSTRAINT fk_exports_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE,
  CONSTRAINT fk_exports_identity_id FOREIGN KEY(identity_id) REFERENCES identities (id) ON DELETE CASCADE
)

CREATE INDEX ix_exports_context_id ON exports (context_id)

CREATE INDEX ix_exports_identity_id ON exports (identity_id)

CREATE TABLE facts (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  identity_id INTEGER NOT NULL,
  context_id INTEGER NOT NULL,
  source_message_id INTEGER,
  topic TEXT NOT NULL,
  text TEXT NOT NULL,
  is_shareable BOOLEAN DEFAULT 0 NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  superseded_at BIGINT,
  set_by TEXT,
  valid_from BIGINT,
  valid_to BIGINT,
  ended_by INTEGER,
  CONSTRAINT fk_facts_identity_id FOREIGN KEY(identity_id) REFERENCES identities (id) ON DELETE CASCADE,
  CONSTRAINT fk_facts_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE,
  CONSTRAINT fk_facts_source_message_id FOREIGN KEY(source_message_id) REFERENCES messages (id) ON DELETE CASCADE
)

CREATE INDEX ix_facts_context_id ON facts (context_id)

CREATE INDEX ix_facts_ended_by ON facts (ended_by) WHERE ended_by IS NOT NULL

CREATE INDEX ix_facts_identity_id ON facts (identity_id)

CREATE INDEX ix_facts_source_message_id ON facts (source_message_id)

CREATE TABLE feedback (
  turn_id INTEGER NOT NULL,
  platform TEXT NOT NULL,
  person_id TEXT NOT NULL,
  verdict TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  CONSTRAINT pk_feedback PRIMARY KEY (turn_id, platform, person_id),
  CONSTRAINT fk_feedback_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE
)

CREATE INDEX ix_feedback_bad ON feedback (turn_id) WHERE verdict = 'bad'

CREATE TABLE link_codes (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  code_hash TEXT NOT NULL,
  identity_id INTEGER NOT NULL,
  other_identity_id INTEGER,
  is_accepted BOOLEAN DEFAULT 0 NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT uq_link_codes_code_hash UNIQUE (code_hash),
  CONSTRAINT fk_link_codes_identity_id FOREIGN KEY(identity_id) REFERENCES identities (id) ON DELETE CASCADE,
  CONSTRAINT fk_link_codes_other_identity_id FOREIGN KEY(other_identity_id) REFERENCES identities (id) ON DELETE CASCADE
)

CREATE INDEX ix_link_codes_identity_id ON link_codes (identity_id)

CREATE INDEX ix_link_codes_other_identity_id ON link_codes (other_identity_id)

CREATE TABLE message_references (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  message_id INTEGER NOT NULL,
  platform TEXT,
  person_id TEXT,
  external_id TEXT,
  CONSTRAINT fk_message_references_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE,
  CONSTRAINT fk_message_references_message_id FOREIGN KEY(message_id) REFERENCES messages (id) ON DELETE CASCADE
)

CREATE INDEX ix_message_references_context_id ON message_references (context_id)

CREATE INDEX ix_message_references_message_id ON message_references (message_id)

CREATE INDEX ix_message_references_person ON message_references (platform, person_id)

CREATE TABLE pending_calls (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  turn_id INTEGER NOT NULL,
  step_id INTEGER NOT NULL,
  call_index INTEGER NOT NULL,
  call_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  name TEXT,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  is_open BOOLEAN DEFAULT 1 NOT NULL,
  transport TEXT NOT NULL,
  author_platform TEXT,
  author_id TEXT,
  author_name TEXT,
  delivery_id INTEGER,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  due_at BIGINT,
  due_set_at BIGINT,
  decided_at BIGINT,
  decided_by INTEGER,
  told_at BIGINT,
  tool_digest TEXT,
  CONSTRAINT fk_pending_calls_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE,
  CONSTRAINT fk_pending_calls_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE
)

CREATE INDEX ix_pending_calls_context_id ON pending_calls (context_id, id)

CREATE INDEX ix_pending_calls_due ON pending_calls (due_at) WHERE is_open

CREATE INDEX ix_pending_calls_turn_id ON pending_calls (turn_id)

CREATE TABLE prompt_log (
  turn_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  context_id INTEGER NOT NULL,
  content BLOB DEFAULT '' NOT NULL,
  CONSTRAINT pk_prompt_log PRIMARY KEY (turn_id, seq),
  CONSTRAINT fk_prompt_log_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE,
  CONSTRAINT fk_prompt_log_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE INDEX ix_prompt_log_context_id ON prompt_log (context_id)

CREATE TABLE refused_facts (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  identity_id INTEGER NOT NULL,
  digest TEXT NOT NULL,
  topic_digest TEXT NOT NULL,
  message_id INTEGER,
  refused_at BIGINT NOT NULL,
  CONSTRAINT fk_refused_facts_identity_id FOREIGN KEY(identity_id) REFERENCES identities (id) ON DELETE CASCADE,
  CONSTRAINT fk_refused_facts_message_id FOREIGN KEY(message_id) REFERENCES messages (id) ON DELETE SET NULL
)

CREATE INDEX ix_refused_facts_identity_id ON refused_facts (identity_id)

CREATE INDEX ix_refused_facts_message_id ON refused_facts (message_id)

CREATE TABLE steps (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  turn_id INTEGER NOT NULL,
  position FLOAT NOT NULL,
  kind TEXT NOT NULL,
  step_number INTEGER,
  is_open BOOLEAN DEFAULT 0 NOT NULL,
  prompt TEXT,
  data BLOB DEFAULT '' NOT NULL,
  CONSTRAINT fk_steps_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE,
  CONSTRAINT fk_steps_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE
)

CREATE INDEX ix_steps_context_id_position ON steps (context_id, position)

CREATE INDEX ix_steps_turn_id ON steps (turn_id)

CREATE TABLE tool_sign_in_states (
  digest TEXT NOT NULL,
  identity_id INTEGER NOT NULL,
  server TEXT NOT NULL,
  data BLOB NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_tool_sign_in_states PRIMARY KEY (digest),
  CONSTRAINT uq_tool_sign_in_states_identity_id_server UNIQUE (identity_id, server),
  CONSTRAINT fk_tool_sign_in_states_identity_id FOREIGN KEY(identity_id) REFERENCES identities (id) ON DELETE CASCADE
)

CREATE INDEX ix_tool_sign_in_states_expires_at ON tool_sign_in_states (expires_at)

CREATE TABLE tool_sign_ins (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  identity_id INTEGER NOT NULL,
  server TEXT NOT NULL,
  data BLOB NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT uq_tool_sign_ins_identity_id_server UNIQUE (identity_id, server),
  CONSTRAINT fk_tool_sign_ins_identity_id FOREIGN KEY(identity_id) REFERENCES identities (id) ON DELETE CASCADE
)

CREATE TABLE turn_figures (
  turn_id INTEGER NOT NULL,
  calls INTEGER DEFAULT '0' NOT NULL,
  failed_calls INTEGER DEFAULT '0' NOT NULL,
  input_tokens INTEGER DEFAULT '0' NOT NULL,
  output_tokens INTEGER DEFAULT '0' NOT NULL,
  cached_tokens INTEGER DEFAULT '0' NOT NULL,
  cost INTEGER DEFAULT '0' NOT NULL,
  model_ms INTEGER DEFAULT '0' NOT NULL,
  lasted_ms INTEGER DEFAULT '0' NOT NULL,
  first_token_ms INTEGER,
  model TEXT,
  tools TEXT NOT NULL,
  CONSTRAINT pk_turn_figures PRIMARY KEY (turn_id),
  CONSTRAINT fk_turn_figures_turn_id FOREIGN KEY(turn_id) REFERENCES turns (id) ON DELETE CASCADE
)

CREATE INDEX ix_turn_figures_cost ON turn_figures (cost, turn_id)

CREATE INDEX ix_turn_figures_lasted_ms ON turn_figures (lasted_ms, turn_id)

CREATE TABLE vectors (
  id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
  context_id INTEGER NOT NULL,
  message_id INTEGER NOT NULL,
  model_key TEXT NOT NULL,
  data BLOB NOT NULL,
  CONSTRAINT fk_vectors_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE,
  CONSTRAINT uq_vectors_message_id UNIQUE (message_id),
  CONSTRAINT fk_vectors_message_id FOREIGN KEY(message_id) REFERENCES messages (id) ON DELETE CASCADE
)

CREATE INDEX ix_vectors_context_id_id ON vectors (context_id, id)

CREATE TABLE web_links (
  digest TEXT NOT NULL,
  identity_id INTEGER NOT NULL,
  used_at BIGINT,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_web_links PRIMARY KEY (digest),
  CONSTRAINT fk_web_links_identity_id FOREIGN KEY(identity_id) REFERENCES identities (id) ON DELETE CASCADE
)

CREATE INDEX ix_web_links_identity_id ON web_links (identity_id)

CREATE TABLE web_logins (
  digest TEXT NOT NULL,
  identity_id INTEGER NOT NULL,
  account_id INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT pk_web_logins PRIMARY KEY (digest),
  CONSTRAINT fk_web_logins_identity_id FOREIGN KEY(identity_id) REFERENCES identities (id) ON DELETE CASCADE,
  CONSTRAINT fk_web_logins_account_id FOREIGN KEY(account_id) REFERENCES identities (id) ON DELETE CASCADE
)

CREATE INDEX ix_web_logins_account_id ON web_logins (account_id)

CREATE INDEX ix_web_logins_identity_id ON web_logins (identity_id)

CREATE TABLE tool_calls (
  step_id INTEGER NOT NULL,
  call_index INTEGER NOT NULL,
  context_id INTEGER NOT NULL,
  status TEXT NOT NULL,
  result TEXT,
  CONSTRAINT pk_tool_calls PRIMARY KEY (step_id, call_index),
  CONSTRAINT fk_tool_calls_step_id FOREIGN KEY(step_id) REFERENCES steps (id) ON DELETE CASCADE,
  CONSTRAINT fk_tool_calls_context_id FOREIGN KEY(context_id) REFERENCES contexts (id) ON DELETE CASCADE
)

CREATE INDEX ix_tool_calls_context_id ON tool_calls (context_id)
