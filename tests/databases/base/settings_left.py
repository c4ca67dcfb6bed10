"""The session variables that ``session_settings`` leaves as the server has them, by reason.

A test asks each server for all of its variables, and fails by one that is neither pinned nor here.
PostgreSQL's families of variables stand by their beginnings.
"""

from __future__ import annotations

from collections.abc import Mapping

from databases.base.session_settings import Server

_PLANS = "they choose among plans and limit their memory; all plans give the same rows"
_TOLD = "what goes beyond them ends with an error, which is shown, and tried again"
_LOGS = "they say what the server logs, traces or measures"
_LOG_OF_CHANGES = "what a sink's server writes into its own log is its operator's affair"
_OF_TRANSACTION = "they are of one transaction, and begin as the pinned defaults"
_SPACE = "they say where and how rows are kept, not which"
_WORK = "they are of maintenance, replication or administration, which binlogd does not do"
_CLIENT = "they are of the connection's traffic, which the client checks"
_UNUSED = "no statement of binlogd depends on it"
_NAMED = "statements that make something name it themselves"
_SAME = "another name of a variable that is pinned"

LEFT: Mapping[Server, Mapping[str, str]] = {
    "postgresql": {
        _PLANS: """
            backend_flush_after commit_delay commit_siblings constraint_exclusion cpu_
            cursor_tuple_fraction deadlock_timeout effective_ enable_ force_parallel_mode
            debug_parallel_query from_collapse_limit geqo hash_mem_multiplier jit
            join_collapse_limit maintenance_ max_parallel_ min_parallel_ parallel_ plan_cache_mode
            random_page_cost recursive_worktable_factor seq_page_cost synchronize_seqscans
            temp_buffers work_mem gin_pending_list_limit default_statistics_target
            stats_fetch_consistency compute_query_id io_ vacuum_buffer_usage_limit
        """,
        _TOLD: """
            statement_timeout idle_in_transaction_session_timeout idle_session_timeout
            transaction_timeout max_stack_depth temp_file_limit exit_on_error tcp_
            client_connection_check_interval escape_string_warning backslash_quote
            check_function_bodies restrict_nonsystem_relation_kind
        """,
        _LOGS: """
            application_name backtrace_functions debug_ log_ logical_decoding_work_mem trace_
            track_ update_process_title lc_messages
        """,
        _OF_TRANSACTION: "transaction_deferrable transaction_isolation transaction_read_only",
        _SPACE: """
            default_tablespace default_toast_compression temp_tablespaces
            allow_in_place_tablespaces
        """,
        _WORK: """
            vacuum_ wal_ password_encryption allow_system_table_mods lo_compat_privileges
            dynamic_library_path extension_ local_preload_libraries session_preload_libraries
            createrole_self_grant event_triggers logical_replication_mode
            debug_logical_replication_streaming allow_alter_system icu_validation_level
            file_copy_method
        """,
        _UNUSED: "default_text_search_config timezone_abbreviations",
        "money has the digits that the server's locale gives it, for the stream's reader, too": (
            "lc_monetary"
        ),
        "a sink's session makes it on where it is off": "synchronous_commit",
    },
    "mysql": {
        _PLANS: """
            big_tables bulk_insert_buffer_size connection_memory_chunk_size
            eq_range_index_dive_limit enable_secondary_engine_statistics
            internal_tmp_mem_storage_engine join_buffer_size low_priority_updates
            max_heap_table_size max_length_for_sort_data max_seeks_for_key
            optimizer_max_subgraph_pairs optimizer_prune_level optimizer_search_depth
            optimizer_switch preload_buffer_size query_alloc_block_size query_prealloc_size
            range_alloc_block_size range_optimizer_max_mem_size read_buffer_size
            read_rnd_buffer_size secondary_engine_cost_threshold select_into_buffer_size
            set_operations_buffer_size sort_buffer_size sql_buffer_result tmp_table_size
            transaction_alloc_block_size transaction_prealloc_size updatable_views_with_limit
            windowing_use_high_precision
        """,
        _TOLD: """
            connection_memory_limit cte_max_recursion_depth global_connection_memory_tracking
            innodb_lock_wait_timeout interactive_timeout lock_wait_timeout max_execution_time
            max_points_in_geometry max_sp_recursion_depth parser_max_mem_size max_user_connections
            sql_require_primary_key wait_timeout
        """,
        _LOGS: """
            end_markers_in_json explain_format explain_json_format_version long_query_time
            max_error_count min_examined_row_limit optimizer_trace optimizer_trace_features
            optimizer_trace_limit optimizer_trace_max_mem_size optimizer_trace_offset profiling
            profiling_history_size sql_log_off sql_notes sql_warnings lc_messages
            print_identified_with_as_hex show_create_table_skip_secondary_engine
            show_create_table_verbosity sql_quote_show_create terminology_use_previous
            show_gipk_in_create_table_and_information_schema
        """,
        _LOG_OF_CHANGES: """
            binlog_direct_non_transactional_updates binlog_format binlog_row_image
            binlog_row_value_options binlog_rows_query_log_events binlog_transaction_compression
            binlog_transaction_compression_level_zstd gtid_next immediate_server_version
            original_commit_timestamp original_server_version pseudo_replica_mode
            pseudo_slave_mode pseudo_thread_id rbr_exec_mode require_row_format sql_log_bin
            group_replication_consistency transaction_allow_batching xa_detach_on_prepare
        """,
        _SPACE: "default_table_encryption innodb_tmpdir select_into_disk_sync",
        _WORK: """
            generated_random_password_length histogram_generation_max_mem_size
            innodb_ddl_buffer_size innodb_ddl_threads innodb_ft_enable_stopword
            innodb_ft_user_stopword_table innodb_parallel_read_threads innodb_table_locks
            keep_files_on_create max_delayed_threads max_insert_delayed_threads
            myisam_sort_buffer_size myisam_stats_method old_alter_table
            select_into_disk_sync_delay
        """,
        _CLIENT: """
            max_allowed_packet net_buffer_length net_read_timeout net_retry_count
            net_write_timeout resultset_metadata session_track_gtids session_track_schema
            session_track_state_change session_track_system_variables
            session_track_transaction_info
        """,
        _UNUSED: """
            auto_increment_increment auto_increment_offset block_encryption_mode
            enable_cascade_triggers identity insert_id last_insert_id rand_seed1 rand_seed2
            restrict_fk_on_non_standard_key
        """,
        _NAMED: """
            character_set_database character_set_filesystem character_set_server
            collation_database collation_server default_collation_for_utf8mb4
            default_tmp_storage_engine external_table_secondary_storage_engine
            external_table_storage_engine
        """,
        "a moment is asked for by SYSDATE, which it does not change": "timestamp",
    },
    "mariadb": {
        _PLANS: """
            analyze_max_length analyze_sample_percentage aria_repair_threads
            aria_sort_buffer_size aria_stats_method big_tables bulk_insert_buffer_size
            deadlock_search_depth_long deadlock_search_depth_short deadlock_timeout_long
            deadlock_timeout_short eq_range_index_dive_limit expensive_subquery_limit
            histogram_size histogram_type in_predicate_conversion_threshold join_buffer_size
            join_buffer_space_limit join_cache_level low_priority_updates max_heap_table_size
            max_length_for_sort_data max_rowid_filter_size max_seeks_for_key max_tmp_tables
            mrr_buffer_size optimizer_adjust_secondary_key_costs optimizer_extra_pruning_depth
            optimizer_join_limit_pref_ratio optimizer_max_sel_arg_weight optimizer_max_sel_args
            optimizer_prune_level optimizer_search_depth optimizer_selectivity_sampling_limit
            optimizer_switch optimizer_use_condition_selectivity preload_buffer_size
            query_alloc_block_size query_cache_strip_comments query_cache_wlock_invalidate
            query_prealloc_size range_alloc_block_size read_buffer_size read_rnd_buffer_size
            rowid_merge_buff_size sort_buffer_size sql_buffer_result standard_compliant_cte
            thread_pool_priority tmp_memory_table_size tmp_table_size transaction_alloc_block_size
            transaction_prealloc_size updatable_views_with_limit use_stat_tables
        """,
        _TOLD: """
            enforce_storage_engine idle_readonly_transaction_timeout idle_transaction_timeout
            idle_write_transaction_timeout innodb_lock_wait_timeout innodb_snapshot_isolation
            interactive_timeout lock_wait_timeout max_recursive_iterations max_session_mem_used
            max_sp_recursion_depth max_statement_time max_user_connections tmp_disk_table_size
            wait_timeout
        """,
        _LOGS: """
            binlog_annotate_row_events lc_messages log_disabled_statements
            log_queries_not_using_indexes log_slow_admin_statements log_slow_disabled_statements
            log_slow_filter log_slow_max_warnings log_slow_min_examined_row_limit log_slow_query
            log_slow_query_time log_slow_rate_limit log_slow_slave_statements log_slow_verbosity
            log_warnings long_query_time max_error_count min_examined_row_limit note_verbosity
            optimizer_trace optimizer_trace_max_mem_size profiling profiling_history_size
            progress_report_time slow_query_log sql_log_off sql_notes sql_quote_show_create
            sql_warnings
        """,
        _LOG_OF_CHANGES: """
            binlog_alter_two_phase binlog_direct_non_transactional_updates binlog_format
            binlog_row_image default_master_connection gtid_domain_id gtid_seq_no
            max_relay_log_size pseudo_slave_mode pseudo_thread_id server_id
            skip_parallel_replication skip_replication sql_log_bin sql_slave_skip_counter
            wsrep_causal_reads wsrep_gtid_seq_no wsrep_on wsrep_osu_method
            wsrep_retry_autocommit wsrep_sync_wait wsrep_trx_fragment_size
            wsrep_trx_fragment_unit
        """,
        _SPACE: """
            column_compression_threshold column_compression_zlib_level
            column_compression_zlib_strategy column_compression_zlib_wrap
            innodb_compression_default innodb_default_encryption_key_id innodb_tmpdir
        """,
        _WORK: """
            alter_algorithm innodb_ft_enable_stopword innodb_ft_user_stopword_table
            innodb_table_locks keep_files_on_create max_delayed_threads
            max_insert_delayed_threads myisam_repair_threads myisam_sort_buffer_size
            myisam_stats_method old_alter_table old_passwords
        """,
        _CLIENT: """
            max_allowed_packet net_buffer_length net_read_timeout net_retry_count
            net_write_timeout session_track_schema session_track_state_change
            session_track_system_variables session_track_transaction_info tcp_nodelay
        """,
        _UNUSED: """
            auto_increment_increment auto_increment_offset default_regex_flags identity insert_id
            last_insert_id rand_seed1 rand_seed2
        """,
        _NAMED: """
            character_set_database
            character_set_filesystem character_set_server collation_database collation_server
            default_tmp_storage_engine
        """,
        _SAME: "storage_engine",
        "a moment is asked for by SYSDATE, which it does not change": "timestamp",
    },
}  # fmt: skip
"""By server and reason, the names. A name that ends in ``_`` is the beginning of several."""


def left(server: Server, name: str) -> bool:
    """Whether the variable stands here."""
    for names in LEFT[server].values():
        for one in names.split():
            if name == one or (server == "postgresql" and name.startswith(one)):
                return True
    return False
