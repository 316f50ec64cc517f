//! A hot standby of a private server, made from a copy of its data directory.

use crate::guard::Guard;
use crate::place::{free_port, private_folder, scratch_in_memory};
use crate::server::{Server, ServerOptions, copy_template};
use parking_lot::Mutex;

impl Server {
    /// A streaming standby of this server, which is stopped and started for it. The server must have been
    /// given [`ServerOptions::replicated`].
    pub fn standby(&self, options: &ServerOptions) -> Server {
        let folder = scratch_in_memory();
        private_folder(&folder.path().join("run"));
        let data = folder.path().join("data");
        self.stop_fast();
        copy_template(&self.data_dir(), &data);
        self.start();
        let guard = Guard::of_server(folder.path(), &data.join("postmaster.pid"));
        let standby = Server {
            major: self.major,
            port: free_port(),
            postmaster: Mutex::new(None),
            folder,
            environment: Vec::new(),
            _guard: guard,
        };
        let primary = format!("host=127.0.0.1 port={} user=postgres application_name=standby", self.port);
        standby.configure(&options.clone().set("primary_conninfo", &primary));
        standby.write_file("standby.signal", b"");
        standby.start();
        standby
    }
}

impl ServerOptions {
    /// Lets standbys connect.
    #[must_use]
    pub fn replicated(mut self) -> ServerOptions {
        self.hba.push("host replication all 127.0.0.1/32 trust".to_owned());
        self
    }
}
