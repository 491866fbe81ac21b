import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The local file system, without a process of its own for each file.
 *
 * Where its native library is missing, Hadoop runs `chmod` for each file that it makes, to give it the
 * permissions that it has, and `ls` for each that it lists.
 */
public final class PlainFiles extends LocalFileSystem {
    public PlainFiles() {
        super(new Raw());
    }

    /** Makes this the local file system of the process. */
    public void install() throws IOException {
        Configuration configuration = new Configuration();
        URI local = URI.create("file:///");
        FileSystem.get(local, configuration).close();
        configuration.setClassLoader(PlainFiles.class.getClassLoader());
        configuration.setClass("fs.file.impl", PlainFiles.class, FileSystem.class);
        // All that ask for it later get this one, however they are configured.
        FileSystem.get(local, configuration);
    }

    private static final class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) {}

        public FileStatus getFileStatus(Path path) throws IOException {
            FileStatus found = super.getFileStatus(path);
            return new FileStatus(
                found.getLen(), found.isDirectory(), found.getReplication(), found.getBlockSize(),
                found.getModificationTime(), found.getAccessTime(), null, null, null,
                found.getPath());
        }
    }
}
