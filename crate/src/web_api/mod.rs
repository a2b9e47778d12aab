//! web_api.
