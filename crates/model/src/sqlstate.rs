//! The server's five-character codes that something is decided by, under the names that PostgreSQL gives them
//! (<https://www.postgresql.org/docs/current/errcodes-appendix.html>).

/// `sqlclient_unable_to_establish_sqlconnection`
pub const SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION: &str = "08001";
/// `protocol_violation`
pub const PROTOCOL_VIOLATION: &str = "08P01";
/// `feature_not_supported`
pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
/// `string_data_right_truncation`
pub const STRING_DATA_RIGHT_TRUNCATION: &str = "22001";
/// `numeric_value_out_of_range`
pub const NUMERIC_VALUE_OUT_OF_RANGE: &str = "22003";
/// `invalid_datetime_format`
pub const INVALID_DATETIME_FORMAT: &str = "22007";
/// `division_by_zero`
pub const DIVISION_BY_ZERO: &str = "22012";
/// `character_not_in_repertoire`
pub const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
/// `invalid_parameter_value`
pub const INVALID_PARAMETER_VALUE: &str = "22023";
/// `invalid_text_representation`
pub const INVALID_TEXT_REPRESENTATION: &str = "22P02";
/// `bad_copy_file_format`
pub const BAD_COPY_FILE_FORMAT: &str = "22P04";
/// `untranslatable_character`
pub const UNTRANSLATABLE_CHARACTER: &str = "22P05";
/// `not_null_violation`
pub const NOT_NULL_VIOLATION: &str = "23502";
/// `foreign_key_violation`
pub const FOREIGN_KEY_VIOLATION: &str = "23503";
/// `unique_violation`
pub const UNIQUE_VIOLATION: &str = "23505";
/// `check_violation`
pub const CHECK_VIOLATION: &str = "23514";
/// `exclusion_violation`
pub const EXCLUSION_VIOLATION: &str = "23P01";
/// `read_only_sql_transaction`
pub const READ_ONLY_SQL_TRANSACTION: &str = "25006";
/// `in_failed_sql_transaction`
pub const IN_FAILED_SQL_TRANSACTION: &str = "25P02";
/// `idle_in_transaction_session_timeout`
pub const IDLE_IN_TRANSACTION_SESSION_TIMEOUT: &str = "25P03";
/// `invalid_sql_statement_name`
pub const INVALID_SQL_STATEMENT_NAME: &str = "26000";
/// `invalid_password`
pub const INVALID_PASSWORD: &str = "28P01";
/// `invalid_catalog_name`
pub const INVALID_CATALOG_NAME: &str = "3D000";
/// `invalid_schema_name`
pub const INVALID_SCHEMA_NAME: &str = "3F000";
/// `serialization_failure`
pub const SERIALIZATION_FAILURE: &str = "40001";
/// `statement_completion_unknown`
pub const STATEMENT_COMPLETION_UNKNOWN: &str = "40003";
/// `deadlock_detected`
pub const DEADLOCK_DETECTED: &str = "40P01";
/// `insufficient_privilege`
pub const INSUFFICIENT_PRIVILEGE: &str = "42501";
/// `syntax_error`
pub const SYNTAX_ERROR: &str = "42601";
/// `invalid_name`
pub const INVALID_NAME: &str = "42602";
/// `undefined_column`
pub const UNDEFINED_COLUMN: &str = "42703";
/// `duplicate_column`
pub const DUPLICATE_COLUMN: &str = "42701";
/// `undefined_object`
pub const UNDEFINED_OBJECT: &str = "42704";
/// `duplicate_object`
pub const DUPLICATE_OBJECT: &str = "42710";
/// `datatype_mismatch`
pub const DATATYPE_MISMATCH: &str = "42804";
/// `undefined_function`
pub const UNDEFINED_FUNCTION: &str = "42883";
/// `undefined_table`
pub const UNDEFINED_TABLE: &str = "42P01";
/// `duplicate_prepared_statement`
pub const DUPLICATE_PREPARED_STATEMENT: &str = "42P05";
/// `duplicate_table`
pub const DUPLICATE_TABLE: &str = "42P07";
/// `invalid_object_definition`
pub const INVALID_OBJECT_DEFINITION: &str = "42P17";
/// `disk_full`
pub const DISK_FULL: &str = "53100";
/// `out_of_memory`
pub const OUT_OF_MEMORY: &str = "53200";
/// `too_many_connections`
pub const TOO_MANY_CONNECTIONS: &str = "53300";
/// `configuration_limit_exceeded`
pub const CONFIGURATION_LIMIT_EXCEEDED: &str = "53400";
/// `program_limit_exceeded`
pub const PROGRAM_LIMIT_EXCEEDED: &str = "54000";
/// `object_not_in_prerequisite_state`
pub const OBJECT_NOT_IN_PREREQUISITE_STATE: &str = "55000";
/// `object_in_use`
pub const OBJECT_IN_USE: &str = "55006";
/// `lock_not_available`
pub const LOCK_NOT_AVAILABLE: &str = "55P03";
/// `query_canceled`
pub const QUERY_CANCELED: &str = "57014";
/// `admin_shutdown`
pub const ADMIN_SHUTDOWN: &str = "57P01";
/// `crash_shutdown`
pub const CRASH_SHUTDOWN: &str = "57P02";
/// `cannot_connect_now`
pub const CANNOT_CONNECT_NOW: &str = "57P03";
/// `idle_session_timeout`
pub const IDLE_SESSION_TIMEOUT: &str = "57P05";
/// `raise_exception`
pub const RAISE_EXCEPTION: &str = "P0001";
/// `internal_error`
pub const INTERNAL_ERROR: &str = "XX000";
/// `data_corrupted`
pub const DATA_CORRUPTED: &str = "XX001";
/// `index_corrupted`
pub const INDEX_CORRUPTED: &str = "XX002";

/// A row contradicts a constraint of the table: class 23.
pub fn is_integrity_violation(sqlstate: &str) -> bool {
    sqlstate.starts_with("23")
}
