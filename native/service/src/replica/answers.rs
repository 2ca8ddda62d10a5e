//! Answers to the questions of an application's endpoint: where the files of an id are.

use super::names::ListId;
use super::pages::Pages;
use crate::store::Store;
use faro_endpoint::Endpoint;
use faro_wire::OutputId;

/// Tells the endpoint where the files of `id` are, if they are here.
pub(crate) fn answer(endpoint: &Endpoint, store: &Store, pages: &Pages, id: OutputId) {
    match ListId::of(id) {
        ListId::Page(page) => endpoint.resolve(id, pages.find(page)),
        // `found` keeps the files open until the endpoint has opened them: their paths are good for no longer.
        ListId::Index(of) => {
            let found = store.find(of);
            let files = found
                .as_ref()
                .and_then(|found| pages.as_block(&found.files.index));
            endpoint.resolve(id, files);
        }
        ListId::Output(id) => {
            let found = store.find(id);
            endpoint.resolve(id, found.as_ref().map(|found| found.files.clone()));
        }
    }
}
