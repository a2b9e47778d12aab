//! The keys below the architecture of a GGUF file, by their effect: the list of llama.cpp (`src/llama-arch.cpp`), for the families that are
//! read here.

use super::FAMILIES;
use super::family::Effect::{self, Nothing, Read, UnlessOne, UnlessZero};
use super::refusal::unsupported;
use crate::error::{Result, Warning, add_warning, word};
use crate::formats::{GgufFile, GgufValue};

/// Every key that llama.cpp knows below the name of an architecture, in families with rotary positions.
pub const KEYS: &[(&str, Effect)] = &[
    ("vocab_size", Read),
    ("context_length", Read),
    ("embedding_length", Read),
    ("embedding_length_out", UnlessZero),
    ("embedding_length_per_layer_input", UnlessZero),
    ("features_length", UnlessZero),
    ("block_count", Read),
    ("leading_dense_block_count", UnlessZero),
    ("feed_forward_length", Read),
    // Keys of experts, of which `expert_count` allows none.
    ("expert_feed_forward_length", Nothing),
    ("expert_shared_feed_forward_length", Nothing),
    ("expert_chunk_feed_forward_length", Nothing),
    ("expert_used_count", Nothing),
    ("expert_group_count", Nothing),
    ("expert_group_used_count", Nothing),
    ("expert_weights_scale", Nothing),
    ("expert_weights_norm", Nothing),
    ("expert_gating_func", Nothing),
    ("expert_group_scale", Nothing),
    ("experts_per_group", Nothing),
    ("moe_every_n_layers", Nothing),
    ("moe_latent_size", Nothing),
    ("interleave_moe_layer_step", Nothing),
    ("router_logit_softcapping", Nothing),
    ("expert_count", UnlessZero),
    ("expert_shared_count", UnlessZero),
    ("swiglu_clamp_exp", UnlessZero),
    ("swiglu_clamp_shexp", UnlessZero),
    ("use_parallel_residual", UnlessZero),
    // The order of the rows of queries and keys, which follows from the architecture.
    ("tensor_data_layout", Nothing),
    ("nextn_predict_layers", UnlessZero),
    ("n_deepstack_layers", UnlessZero),
    ("deepstack_mapping", UnlessZero),
    ("hidden_activation", UnlessZero),
    // Keys of embeddings of whole texts.
    ("pooling_type", Nothing),
    ("classifier.output_labels", Nothing),
    ("dense_2_feat_in", Nothing),
    ("dense_2_feat_out", Nothing),
    ("dense_3_feat_in", Nothing),
    ("dense_3_feat_out", Nothing),
    ("logit_scale", UnlessOne),
    ("decoder_start_token_id", Nothing),
    ("decoder_block_count", UnlessZero),
    ("attn_logit_softcapping", UnlessZero),
    ("final_logit_softcapping", UnlessZero),
    ("swin_norm", UnlessZero),
    ("rescale_every_n_layers", UnlessZero),
    ("time_mix_extra_dim", UnlessZero),
    ("time_decay_extra_dim", UnlessZero),
    ("residual_scale", UnlessOne),
    ("embedding_scale", UnlessOne),
    ("token_shift_count", UnlessZero),
    ("full_attention_interval", UnlessZero),
    ("hash_layer_count", UnlessZero),
    ("target_layers", UnlessZero),
    ("target_hidden_size", UnlessZero),
    ("norm_before_residual", UnlessZero),
    ("attention.head_count", Read),
    ("attention.head_count_kv", Read),
    ("attention.max_alibi_bias", UnlessZero),
    ("attention.clamp_kqv", UnlessZero),
    ("attention.key_length", Read),
    ("attention.value_length", Read),
    ("attention.layer_norm_epsilon", Nothing),
    ("attention.layer_norm_rms_epsilon", Read),
    ("attention.group_norm_epsilon", Nothing),
    ("attention.group_norm_groups", UnlessZero),
    ("attention.causal", Read),
    ("attention.q_lora_rank", UnlessZero),
    ("attention.kv_lora_rank", UnlessZero),
    ("attention.decay_lora_rank", UnlessZero),
    ("attention.iclr_lora_rank", UnlessZero),
    ("attention.value_residual_mix_lora_rank", UnlessZero),
    ("attention.gate_lora_rank", UnlessZero),
    ("attention.output_lora_rank", UnlessZero),
    ("attention.relative_buckets_count", UnlessZero),
    ("attention.sliding_window", Read),
    // Keys of a sliding window, which is refused where there is one.
    ("attention.sliding_window_pattern", Nothing),
    ("attention.key_length_swa", Nothing),
    ("attention.value_length_swa", Nothing),
    ("rope.dimension_count_swa", Nothing),
    ("rope.freq_base_swa", Nothing),
    ("attention.scale", Read),
    ("attention.output_scale", UnlessOne),
    ("attention.value_scale", UnlessOne),
    ("attention.temperature_length", Nothing),
    ("attention.temperature_scale", UnlessZero),
    ("attention.key_length_mla", UnlessZero),
    ("attention.value_length_mla", UnlessZero),
    ("attention.indexer.head_count", UnlessZero),
    ("attention.indexer.key_length", UnlessZero),
    ("attention.indexer.top_k", UnlessZero),
    ("attention.output_group_count", UnlessZero),
    ("attention.compress_rope_freq_base", UnlessZero),
    ("attention.compress_ratios", UnlessZero),
    ("attention.shared_kv_layers", UnlessZero),
    ("attention.recurrent_layers", UnlessZero),
    ("hyper_connection.count", UnlessZero),
    ("hyper_connection.sinkhorn_iterations", UnlessZero),
    ("hyper_connection.epsilon", Nothing),
    ("rope.dimension_count", Read),
    ("rope.dimension_sections", UnlessZero),
    ("rope.freq_base", Read),
    ("rope.scale_linear", Read),
    ("rope.scaling.type", Read),
    ("rope.scaling.factor", Read),
    ("rope.scaling.alpha", UnlessOne),
    ("rope.scaling.attn_factor", Read),
    ("rope.scaling.finetuned", Nothing),
    // llama.cpp mixes by the first and scales by the second, whatever the type is.
    ("rope.scaling.yarn_ext_factor", UnlessZero),
    ("rope.scaling.yarn_attn_factor", UnlessOne),
    ("rope.scaling.yarn_log_multiplier", UnlessZero),
    ("rope.scaling.original_context_length", Read),
    ("rope.scaling.yarn_beta_fast", Read),
    ("rope.scaling.yarn_beta_slow", Read),
    ("ssm.conv_kernel", UnlessZero),
    ("ssm.inner_size", UnlessZero),
    ("ssm.state_size", UnlessZero),
    ("ssm.time_step_rank", UnlessZero),
    ("ssm.group_count", UnlessZero),
    ("ssm.dt_b_c_rms", UnlessZero),
    ("kda.head_dim", UnlessZero),
    ("wkv.head_size", UnlessZero),
    ("posnet.embedding_length", UnlessZero),
    ("posnet.block_count", UnlessZero),
    ("convnext.embedding_length", UnlessZero),
    ("convnext.block_count", UnlessZero),
    ("shortconv.l_cache", UnlessZero),
];

/// Returns the effect of a key in the family of this architecture.
pub fn effect(architecture: &str, key: &str) -> Option<Effect> {
    let of = |keys: &[(&str, Effect)]| {
        keys.iter()
            .find(|(known, _)| *known == key)
            .map(|(_, effect)| *effect)
    };
    let own = FAMILIES
        .iter()
        .filter(|family| family.gguf.contains(&architecture))
        .find_map(|family| of(family.gguf_effects));
    own.or_else(|| of(KEYS))
}

/// Refuses keys that change what the model computes, and warns about unknown ones of its architecture.
pub(crate) fn check_keys(file: &GgufFile, family: &str, warnings: &mut Vec<Warning>) -> Result<()> {
    let own = file.metadata.iter().filter_map(|(name, value)| {
        Some((name, name.strip_prefix(family)?.strip_prefix('.')?, value))
    });
    for (name, key, value) in own {
        let (neutral, expected) = match effect(family, key) {
            None => {
                add_warning(warnings, word!("gguf.key.unread"), name);
                continue;
            }
            Some(Read | Nothing) => continue,
            Some(UnlessZero) => (value.is_zero(), "0, or absent"),
            Some(UnlessOne) => (
                value.is_zero() || value.number() == Some(1.0),
                "1, or absent",
            ),
        };
        if !neutral {
            return Err(unsupported(name, shown(value), expected));
        }
    }
    Ok(())
}

/// Formats a value for a refusal.
fn shown(value: &GgufValue) -> String {
    let plain = value
        .number()
        .map(|number| number.to_string())
        .or_else(|| value.bool().map(|flag| flag.to_string()));
    plain
        .or_else(|| value.text().map(str::to_string))
        .unwrap_or_else(|| "a list".to_string())
}
