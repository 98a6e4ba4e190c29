from antiphon.storage import READS, Store

WRITES = {
    *("add_user", "set_training", "add_key", "revoke_key", "touch_keys", "erase_user"),
    *("create_conversation", "update_conversation", "delete_conversation"),
    *("add_items", "delete_item"),
    *(
        "accept_turn",
        "withdraw_turn",
        "request_cancel",
        "start_response",
        "append_events",
        "finish_response",
        "renew_leases",
    ),
    *("orphans", "update_response_metadata", "delete_response", "set_feedback"),
    *("add_file", "delete_file", "expire"),
    *("set_plan", "suspend_user", "suspend_key", "suspend_until", "lift_suspension"),
    "add_policy_events",
    *("take_work", "renew_work", "finish_work", "give_title", "add_summary"),
    *("add_memories", "update_memory", "delete_memory", "delete_memories"),
    *("add_prompt", "activate_prompt"),
    *("want_document", "remake_documents", "take_documents", "renew_document"),
    *("finish_document", "fail_document", "release_document"),
    *("create_vector_store", "update_vector_store", "touch_vector_stores", "delete_vector_store"),
    *("add_vector_store_files", "remove_vector_store_file", "set_file_attributes"),
    "cancel_file_batch",
    *("reserve", "settle", "release", "uncount", "renew_reservations", "lapse_reservations"),
}


def test_every_operation_of_a_store_is_a_read_or_a_write():
    operations = {name for name in dir(Store) if not name.startswith("_")}

    assert operations == READS | WRITES
    assert not READS & WRITES
