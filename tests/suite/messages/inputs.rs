//! Inputs that raise the codes of the table: those of other tests, and some files and calls of its own.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::json;
use tabtune::bundle::{ByteSource, FileFormat, inspect};
use tabtune::data::DataWarning;
use tabtune::formats::{MemorySource, safetensors_header};

use crate::hostile::shard;

/// Names of tests that raise codes, each in their own way.
pub const TESTS: &[&str] = &[
    "adapter::beside::an_adapter_states_the_digest_of_its_base_and_another_base_is_reported",
    "adapter::leaving::what_the_file_of_llama_cpp_cannot_say_is_refused",
    "adapter::merged::change_that_blocks_lose_is_a_warning",
    "adapter::merged::merged_model_needs_the_base_of_its_adapter",
    "adapter::runs::adapter_leaves_as_a_folder_of_peft_and_comes_back",
    "bundle::adapter_refused::a_stated_base_must_be_the_base",
    "bundle::adapter_refused::configurations_are_refused_by_the_path_of_their_field",
    "bundle::adapter_refused::files_that_are_no_adapter_of_peft_are_refused",
    "bundle::adapter_refused::pairs_of_excluded_modules_are_not_used",
    "bundle::adapter_refused::tensors_that_do_not_fit_are_listed_together",
    "bundle::adapter_saved::a_pair_of_a_table_that_grew_is_added_to_it",
    "bundle::added_tokens::added_tokens_beyond_the_rows_are_out_of_use_with_a_warning",
    "bundle::added_tokens::an_end_in_a_list_that_is_a_part_of_texts_is_reported",
    "bundle::added_tokens::ids_next_to_the_text_that_no_token_has_are_reported",
    "bundle::added_tokens::special_tokens_that_the_vocabulary_lacks_have_the_next_ids_and_are_reported",
    "bundle::added_tokens::tokens_that_have_another_id_than_a_file_states_are_reported",
    "bundle::check_tensors::tensors_outside_the_blocks_are_left_out_with_a_warning",
    "bundle::companions::refused_tokenizer_leaves_the_tensors_usable",
    "bundle::companions::split_parts_that_do_not_make_a_whole_are_refused",
    "bundle::config::a_context_that_is_not_stated_is_that_of_the_publication",
    "bundle::config::what_is_not_built_is_refused_by_name",
    "bundle::documents::config_index_and_adapter_say_what_lies_in_their_place",
    "bundle::encode::encoded_blocks_have_no_place_for_nan_and_infinity",
    "bundle::folder::a_head_of_another_dtype_with_the_same_numbers_is_a_copy",
    "bundle::folder::embedding_rows_are_compared_with_the_vocabulary",
    "bundle::folder::files_that_are_no_model_are_distinguished",
    "bundle::gguf_keys::a_key_that_nobody_knows_is_a_warning",
    "bundle::pieces::sources_that_end_early_or_pass_memory_have_their_words",
    "bundle::nested::text_part_of_a_nested_configuration_is_opened_alone",
    "bundle::prefixes::a_gpt2_within_wrappers_has_its_names",
    "bundle::requests::each_field_of_a_request_is_honoured_or_refused",
    "bundle::tokenizer_binding::template_of_the_file_wins_and_a_conflict_is_reported",
    "bundle::tokenizer_of_folder::a_pointer_in_the_place_of_a_document_is_reported_and_not_carried",
    "bundle::tokenizer_of_folder::a_template_that_is_none_is_refused_with_the_tokenizer",
    "bundle::tokenizer_of_folder::added_tokens_are_decoded_to_their_own_texts",
    "bundle::tokenizer_of_folder::merges_that_are_none_are_refused_as_their_own_file",
    "bundle::vocabularies::an_end_that_no_key_names_is_reported",
    "bundle::vocabularies::vocabularies_that_llama_cpp_refuses_or_guesses_are_refused",
    "checkpoint::changes::another_environment_is_a_warning",
    "checkpoint::changes::freezing_a_group_at_a_resume_drops_its_state_and_says_so",
    "checkpoint::changes::other_data_are_refused_by_name_unless_data_is_named",
    "checkpoint::words::another_format_is_a_version_and_no_damage",
    "checkpoint::words::file_of_another_length_and_piece_of_other_bytes_have_words_of_their_own",
    "config::adapter::targets_are_those_of_peft",
    "config::adapter::unknown_fields_of_a_file_are_kept_and_read_settings_hold",
    "data::arrays::what_is_wrong_between_rows_is_reported_and_costs_none",
    "data::bad_data_is_a_typed_error",
    "data::examples_are_cut_filled_and_left_out_when_nothing_is_learned",
    "data::forms::all_faulty_rows_are_found_and_may_be_left_out",
    "data::forms::columns_name_keys_and_patterns",
    "data::forms::files_that_are_not_data_are_refused_by_their_kind",
    "data::forms::form_is_found_by_content_under_any_name",
    "data::forms::form_that_is_given_holds_and_a_contradiction_is_refused",
    "data::forms::joint_is_encoded_once",
    "data::forms::rows_of_every_shape_are_read",
    "data::loader_refuses_a_state_of_other_data_and_lists_all_differences",
    "data::messages::an_end_that_is_learned_twice_is_reported",
    "data::messages::answers_without_text_are_reported",
    "data::newlines::line_ends_of_a_text_are_those_of_python",
    "data::packing::long_examples_are_counted_and_cut_left_out_or_split",
    "data::shares::a_share_of_nothing_is_reported",
    "data::shares::a_share_that_keeps_no_row_for_evaluation_is_reported",
    "data::tables::quotes_that_break_the_rules_cost_no_row",
    "data::text_to_ids::arguments_that_are_texts_in_quotes_are_reported",
    "data::text_to_ids::characters_without_a_token_are_reported",
    "data::text_to_ids::control_tokens_in_contents_are_reported",
    "data::token_files_are_ids_without_a_tokenizer",
    "export::unsaid::a_window_that_llama_cpp_ignores_is_reported",
    "export::header::each_rule_of_a_header_has_its_word",
    "export::patch::another_base_is_refused",
    "export::receipt::broken_receipts_are_refused",
    "export::recipe::facts_that_a_new_file_cannot_hold_are_in_its_receipt",
    "export::stored::blocks_are_copied_dequantised_or_refused",
    "export::stored::what_cannot_be_opened_again_is_refused",
    "export::vocabulary::tokenizers_of_other_rules_are_refused",
    "gpu::transfer::buffers_of_two_devices_in_one_launch_are_an_error_that_names_them",
    "hostile::every_hostile_file_gets_its_answer",
    "hostile::rows::gguf_rows",
    "hostile::rows::peft_rows",
    "hostile::rows::safetensors_rows",
    "hostile::rows::shards_that_cannot_be_opened_refuse_the_index_alone",
    "model::token_ids_outside_the_vocabulary_are_refused",
    "model::weights_that_do_not_fit_are_refused_by_name",
    "portable::checks::portable_checks_refuse_names_that_do_not_fit",
    "portable::checks::portable_checks_tell_every_fault_at_once",
    "portable::delta::both_models_have_the_same_tensors",
    "portable::delta::only_the_weights_bind",
    "portable::continuation::residency_elsewhere_is_reported_and_not_continued",
    "portable::extract::extraction_refuses_what_it_cannot_compare",
    "portable::extract::extraction_tells_its_progress_and_ends_when_asked",
    "portable::extract::rank_beyond_the_matrix_is_exact_and_warned_of",
    "portable::json::numbers_hold_no_more_than_they_can",
    "portable::json::one_bit_changes_its_digest",
    "portable::json::too_large_a_state_is_refused_unread",
    "portable::manifest::portable_manifest_knows_three_residencies",
    "portable::safetensors::a_manifest_agrees_with_its_files",
    "portable::safetensors::a_state_needs_weights",
    "portable::safetensors::an_optimizer_file_belongs_to_its_weights",
    "portable::safetensors::every_dtype_survives",
    "portable::safetensors::the_model_file_alone_tells_the_groups",
    "portable::selection::portable_selection_is_the_same_in_every_order",
    "portable::selection::portable_selection_lists_every_absent_key",
    "portable::selection::portable_selection_refuses_two_sources_of_one_name",
    "portable::state_dict::everything_wrong_is_listed",
    "portable::state_dict::values_are_widened",
    "portable::training::what_one_run_cannot_train_is_refused",
    "report_every::state_is_refused_before_its_reports_are_there",
    "schedule::a_start_that_is_stated_twice_is_reported",
    "tokenizer::chat_templates_have_a_budget",
    "tokenizer::patterns_of_a_tokenizer_have_a_budget",
    "train::notices::settings_without_effect_are_reported",
    "varying::rates_of_a_rule_of_ones_own_are_those_of_each_step",
    "witness::a_device_of_another_runtime_is_refused_before_it_is_opened",
];

/// State dict of one tensor as JSON.
const STATE: &str = r#"{"format":"tabtune.torch_state_dict_json","version":1,"encoding":"numbers","state_dict":{"w":{"dtype":"F32","shape":[2],"values":[0.1,-2]}}}"#;

/// Opens files that no other test of the list opens.
pub fn open_files() {
    let open = |name: &str, format, bytes: &[u8]| {
        let shards = || {
            Ok(vec![
                Rc::new(shard("model-1.safetensors", &json!(["a", "b"]))) as Rc<dyn ByteSource>,
            ])
        };
        drop(inspect(
            &MemorySource::new(name, bytes),
            Some(format),
            shards,
            true,
        ));
    };
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(40), "]".repeat(40));
    for text in [deep.as_str(), r#"{"r":1,"r":2}"#] {
        open("adapter_config.json", FileFormat::Peft, text.as_bytes());
    }
    let shards: Vec<String> = (0..10_001)
        .map(|n| format!(r#""t{n}":"s{n}.safetensors""#))
        .collect();
    let many = format!(r#"{{"weight_map":{{{}}}}}"#, shards.join(","));
    let unlisted = r#"{"weight_map":{"a":"model-1.safetensors"}}"#;
    for text in [
        deep.as_str(),
        r#"{"weight_map":{},"weight_map":{}}"#,
        r#"{"weight_map":3}"#,
        &many,
        unlisted,
    ] {
        open(
            "model.safetensors.index.json",
            FileFormat::Index,
            text.as_bytes(),
        );
    }
    let tensors: Vec<String> = (0..50_001).map(|n| format!(r#""t{n}":0"#)).collect();
    let size = format!(
        r#"{{"format":"tabtune.torch_state_dict_json","version":1,"encoding":"numbers","state_dict":{{{}}}}}"#,
        tensors.join(",")
    );
    open("big.state_dict.json", FileFormat::Json, size.as_bytes());
    for (from, to) in [
        ("numbers", "hex"),
        (r#""version":1"#, r#""version":1,"version":1"#),
        ("[2]", "[-1]"),
        (r#""version":1"#, r#""version":2"#),
    ] {
        open(
            "model.state_dict.json",
            FileFormat::Json,
            STATE.replacen(from, to, 1).as_bytes(),
        );
    }
    open(
        "model.state_dict.json",
        FileFormat::Json,
        STATE
            .replace(
                r#"{"w":{"dtype":"F32","shape":[2],"values":[0.1,-2]}}"#,
                "3",
            )
            .as_bytes(),
    );
    let counts = [0u64.to_le_bytes(), 1u64.to_le_bytes(), 1u64.to_le_bytes()].concat();
    open(
        "model.gguf",
        FileFormat::Gguf,
        &[&b"GGUF\x03\0\0\0"[..], &counts, b"\xff\x04\0\0\0\0\0\0\0"].concat(),
    );
    assert_eq!(
        safetensors_header(&[("a\tb".to_owned(), "F32", vec![1])], &BTreeMap::new())
            .err()
            .unwrap()
            .code(),
        "export.name.invalid"
    );
    assert!(DataWarning::passed_over(&["notes.docx".to_owned(), "photo.png".to_owned()]).is_some());
}
