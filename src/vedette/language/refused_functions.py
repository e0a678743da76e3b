"""Functions that Spark has and queries may not call, with the reason. docs/language.md lists them.

A name that is also in the function table is supported, whatever this table says; `refused_functions` leaves it out.
A test compares both tables with SHOW FUNCTIONS of Spark.
"""

from __future__ import annotations

from vedette.language.function_table import FUNCTIONS
from vedette.language.spark_functions import BY_GROUP

# Operators and forms that SHOW FUNCTIONS lists, and that queries may use.
OPERATORS = frozenset(
    [
        "!",
        "!=",
        "%",
        "&",
        "*",
        "+",
        "-",
        "/",
        "<",
        "<<",
        "<=",
        "<=>",
        "<>",
        "=",
        "==",
        ">",
        ">=",
        ">>",
        ">>>",
        "^",
        "and",
        "between",
        "case",
        "cast",
        "div",
        "extract",
        "ilike",
        "in",
        "like",
        "not",
        "or",
        "regexp",
        "rlike",
        "when",
        "|",
        "||",
        "~",
    ]
)
_REASONS: dict[str, str] = {
    "it aggregates rows, and a query is a condition on one row": """
        any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
        approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg bitmap_construct_agg bitmap_or_agg
        bool_and bool_or collect_list collect_set collect_union corr count count_if count_min_sketch covar_pop
        covar_samp every first first_value grouping grouping_id histogram_numeric hll_sketch_agg hll_union_agg
        kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double
        kll_sketch_agg_float kurtosis last last_value listagg max max_by mean measure median min min_by mode
        percentile percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept
        regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp string_agg sum
        theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum tuple_intersection_agg_double
        tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer tuple_union_agg_double
        tuple_union_agg_integer var_pop var_samp variance
    """,
    "it needs neighbouring rows, and a query is a condition on one row": """
        counter_diff cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number session_window
        window window_time
    """,
    "it makes several rows of one": """
        collations explode explode_outer inline inline_outer posexplode posexplode_outer python_worker_logs range
        sql_keywords stack
    """,
    "it is not deterministic, so a retry would give another answer": """
        input_file_block_length input_file_block_start input_file_name monotonically_increasing_id rand randn random
        randstr shuffle spark_partition_id uniform uuid
    """,
    "its result depends on the session or the user": """
        current_catalog current_database current_path current_schema current_timezone current_user session_user user
        version
    """,
    "it raises an error or runs Java code": """
        assert_true java_method raise_error reflect try_reflect
    """,
    "sketches are aggregates in a binary form": """
        approx_top_k_estimate bitmap_bit_position bitmap_bucket_number bitmap_count hll_sketch_estimate hll_union
        kll_sketch_get_n_bigint kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint
        kll_sketch_get_quantile_double kll_sketch_get_quantile_float kll_sketch_get_rank_bigint
        kll_sketch_get_rank_double kll_sketch_get_rank_float kll_sketch_merge_bigint kll_sketch_merge_double
        kll_sketch_merge_float kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float
        theta_difference theta_intersection theta_sketch_estimate theta_union tuple_difference_double
        tuple_difference_integer tuple_difference_theta_double tuple_difference_theta_integer
        tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
        tuple_intersection_theta_integer tuple_sketch_estimate_double tuple_sketch_estimate_integer
        tuple_sketch_summary_double tuple_sketch_summary_integer tuple_sketch_theta_double
        tuple_sketch_theta_integer tuple_union_double tuple_union_integer tuple_union_theta_double
        tuple_union_theta_integer vector_avg vector_cosine_similarity vector_inner_product vector_l2_distance
        vector_norm vector_normalize vector_sum
    """,
    "there is no type for variants, JSON, XML, CSV, Avro or Protobuf; parse them before the transform": """
        from_avro from_csv from_json from_protobuf from_xml get_json_object is_valid_variant is_variant_null
        json_array_length json_object_keys json_tuple parse_json schema_of_avro schema_of_csv schema_of_json
        schema_of_variant schema_of_variant_agg schema_of_xml to_avro to_csv to_json to_protobuf to_variant_object
        to_xml try_parse_json try_variant_array_append try_variant_get try_variant_insert try_variant_set
        variant_array_append variant_delete variant_explode variant_explode_outer variant_get variant_insert
        variant_set variant_strip_nulls xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long
        xpath_number xpath_short xpath_string
    """,
    "there is no geometry type; see [geofences](#geofences)": """
        st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid
    """,
    "there is no type for times of day": """
        current_time localtime make_time time time_bucket time_diff time_from_micros time_from_millis
        time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc to_time try_to_time
    """,
    "arrays, maps and structs have only some of their functions here": """
        aggregate array_append array_insert array_prepend array_repeat arrays_zip filter flatten map map_concat
        map_entries map_filter map_from_arrays map_from_entries map_zip_with named_struct reduce sentences sequence
        str_to_map struct transform transform_keys transform_values zip_with
    """,
    "strings have no collations here": """
        collate collation
    """,
    "it encrypts or decrypts, and keys do not belong in queries": """
        aes_decrypt aes_encrypt hmac try_aes_decrypt
    """,
    "URLs are not parsed": """
        parse_url try_parse_url
    """,
    "a decimal needs its size; write CAST(x AS decimal(p,s))": """
        decimal
    """,
    "every expression has a known type": """
        typeof
    """,
    "bytes are written and read in hexadecimal digits, by hex and unhex": """
        base64 binary encode to_binary try_to_binary unhex
    """,
    "an interval has either months or days and times; write INTERVAL literals": """
        make_dt_interval make_interval make_ym_interval try_make_interval
    """,
    "timestamps have microseconds": """
        timestamp_nanos unix_nanos
    """,
    "numbers are not written or read by such patterns; format_number and format_string write them": """
        to_number try_to_number
    """,
    "it is rarely part of a condition; compute it as a column before the transform": """
        elt find_in_set luhn_check overlay quote soundex space
    """,
    "every string is valid UTF-8 here": """
        is_valid_utf8 make_valid_utf8 try_validate_utf8 validate_utf8
    """,
    "not supported yet": """
        add_months ascii bit_length btrim char chr concat_ws crc32 curdate current_date current_timestamp date_add
        date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart dayname
        dayofyear from_unixtime from_utc_timestamp initcap instr last_day left levenshtein locate lpad make_date
        make_timestamp make_timestamp_ltz md5 monthname months_between next_day now octet_length
        position quarter regexp_count regexp_extract regexp_instr regexp_like regexp_replace regexp_substr repeat
        replace right rpad sha sha1 sha2 split_part substring_index timestamp_micros timestamp_millis
        timestamp_seconds to_date to_timestamp to_timestamp_ltz to_unix_timestamp to_utc_timestamp
        translate trunc try_make_timestamp try_make_timestamp_ltz try_to_date
        try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear
    """,
}
REFUSED = {name: reason for reason, names in _REASONS.items() for name in names.split()}


# Reasons that are about a type which fields and expressions do not have.
_NO_TYPE = (
    "there is no type for times of day",
    "timestamps have microseconds",
    "an interval has either months or days and times; write INTERVAL literals",
    "strings have no collations here",
)


def coverage() -> dict[str, tuple[int, int, list[str]]]:
    """By group of Spark's functions: how many are supported, of how many over our types, and those that are not."""
    found = {}
    for group, written in BY_GROUP.items():
        names = [name for name in written.split() if REFUSED.get(name) not in _NO_TYPE or name in FUNCTIONS]
        lacking = [name for name in names if name not in FUNCTIONS and name not in OPERATORS]
        found[group] = len(names) - len(lacking), len(names), lacking
    return found


def document_coverage() -> str:
    """The coverage as a table for docs/language.md."""
    rows = [
        f"| {group} | {n} of {n_all} | {n / n_all:.0%} | {', '.join(f'`{name}`' for name in lacking)} |"
        for group, (n, n_all, lacking) in coverage().items()
    ]
    return "\n".join(["| group | supported | | not supported |", "| --- | --- | --- | --- |", *rows])


def refused_functions() -> dict[str, list[str]]:
    """By reason, the functions of Spark that are refused."""
    found: dict[str, list[str]] = {}
    for name, reason in sorted(REFUSED.items()):
        if name not in FUNCTIONS:
            found.setdefault(reason, []).append(name)
    return found


def document() -> str:
    """The refused functions as a table for docs/language.md."""
    rows = [
        f"| {', '.join(f'`{name}`' for name in names)} | {reason} |" for reason, names in refused_functions().items()
    ]
    return "\n".join(["| functions | reason |", "| --- | --- |", *rows])
