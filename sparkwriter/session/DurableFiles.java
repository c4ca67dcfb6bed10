package binlogd;

import com.globalmentor.apache.hadoop.fs.BareLocalFileSystem;
import com.globalmentor.apache.hadoop.fs.NakedLocalFileSystem;
import java.io.File;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.OpenOption;
import java.nio.file.StandardOpenOption;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local files, durable with their names once they are closed. So whatever a catalog
 * points at is on the disk before the catalog's pointer is.
 *
 * Compiled by Spark's own compiler (see durable_files.py), which knows no generics and no lambdas.
 */
public class DurableFiles extends BareLocalFileSystem {
  /**
   * Without files of checksums: only Hadoop reads those, each would be waited for like the file
   * beside it, and where one can't be written Hadoop leaves the other one open, empty and in place.
   * What has one from before is still checked by it.
   */
  public DurableFiles() {
    super(new Raw());
    setWriteChecksum(false);
  }

  /** Makes the names in a folder durable. */
  static void syncFolder(File folder) throws IOException {
    OpenOption[] reading = new OpenOption[] {StandardOpenOption.READ};
    FileChannel channel = FileChannel.open(folder.toPath(), reading);
    try {
      channel.force(true);
    } finally {
      channel.close();
    }
  }

  static File folderOf(File file) {
    return file.getAbsoluteFile().getParentFile();
  }

  /** The files beneath the checksums. */
  public static class Raw extends NakedLocalFileSystem {
    protected OutputStream createOutputStream(Path path, boolean append) throws IOException {
      File file = pathToFile(path);
      return new Durable(new FileOutputStream(file, append), file);
    }

    /** The process's umask alone says who may read them, as with files that Python puts there. */
    protected OutputStream createOutputStreamWithMode(
        Path path, boolean append, FsPermission permission) throws IOException {
      return createOutputStream(path, append);
    }

    protected boolean mkOneDirWithMode(Path path, File folder, FsPermission permission)
        throws IOException {
      boolean made = super.mkOneDirWithMode(path, folder, permission);
      if (made) {
        syncFolder(folderOf(folder));
      }
      return made;
    }

    public boolean rename(Path from, Path to) throws IOException {
      boolean renamed = super.rename(from, to);
      if (renamed) {
        syncFolder(folderOf(pathToFile(to)));
      }
      return renamed;
    }
  }

  /**
   * Durable once it is closed. One that can't be made so fails its close; what could not be written
   * whole is removed then, since a full disk would else keep a part for each time it is tried.
   */
  static class Durable extends FilterOutputStream {
    private final FileOutputStream stream;
    private final File file;
    private boolean whole = true;
    private boolean closed;

    Durable(FileOutputStream stream, File file) {
      super(stream);
      this.stream = stream;
      this.file = file;
    }

    public void write(int one) throws IOException {
      write(new byte[] {(byte) one}, 0, 1);
    }

    /** Not byte by byte, as the class above would. */
    public void write(byte[] bytes, int from, int count) throws IOException {
      boolean written = false;
      try {
        stream.write(bytes, from, count);
        written = true;
      } finally {
        if (!written) {
          whole = false;
          file.delete(); // at once: whoever made it may never close it
        }
      }
    }

    public void close() throws IOException {
      if (closed) {
        return;
      }
      closed = true;
      boolean durable = false;
      try {
        stream.getChannel().force(true);
        durable = true;
      } finally {
        stream.close();
        if (!durable) {
          file.delete();
        }
      }
      if (!whole) {
        throw new IOException(file + " could not be written whole");
      }
      syncFolder(folderOf(file));
    }
  }
}
