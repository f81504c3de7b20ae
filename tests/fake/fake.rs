//! The fake does what the table of semantics says.

use fettle_tests::api::fake::Fake;
use fettle_tests::api::semantics;

#[tokio::test]
async fn the_fake_does_as_the_table_says() {
    let fake = Fake::start().expect("a fake");
    let client = fake.client().expect("a client");
    let failures = semantics::failures(&client, "fake").await;
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test]
async fn the_fake_answers_410_for_what_it_forgot() {
    let fake = Fake::start().expect("a fake");
    let client = fake.client().expect("a client");
    let compact = async |_| {
        fake.compact();
        Ok(())
    };
    semantics::compaction(&client, "fake", compact).await.expect("410");
}
